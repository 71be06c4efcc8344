package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/muster/examples"
)

func node(gpus, milli int64, change ...func(*capacity.Node)) query.Node {
	n := query.Node{Node: capacity.Node{Ready: true}, Free: resource.List{gpu: gpus, resource.CPU: milli}}
	for _, c := range change {
		c(&n.Node)
	}
	return n
}

func tainted(effect string) func(*capacity.Node) {
	return func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: "k", Effect: effect}} }
}

func TestFill(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		nodes []query.Node
		want  size
		fails bool
	}{
		"machines of preset p3":    {[]query.Node{node(0, 8000), node(2, 16000), node(1, 8000), node(1, 8000)}, size{gpu, 2, 1}, false},
		"equal nodes":              {[]query.Node{node(8, 1), node(8, 1), node(8, 1)}, size{gpu, 5, 3}, false},
		"one is full":              {[]query.Node{node(8, 1), node(-1, 1)}, size{gpu, 5, 1}, false},
		"no GPUs":                  {[]query.Node{node(0, 4000), node(0, 3000), node(0, 1000)}, size{resource.CPU, 2001, 2}, false},
		"nodes that take no pods":  {[]query.Node{node(8, 1, tainted("NoSchedule")), node(4, 1, func(n *capacity.Node) { n.Cordoned = true }), node(2, 1)}, size{gpu, 2, 1}, false},
		"a taint that keeps none":  {[]query.Node{node(8, 1, tainted("PreferNoSchedule"))}, size{gpu, 5, 1}, false},
		"nothing":                  {nil, size{}, true},
		"nothing that takes a pod": {[]query.Node{node(8, 1, func(n *capacity.Node) { n.Ready = false })}, size{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := fill(test.nodes)
			if (err != nil) != test.fails {
				t.Fatalf("error is %v, want one: %t", err, test.fails)
			}
			if err == nil && got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestFragmented(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		free []int64
		want int64
		ok   bool
	}{
		"one here, one there": {[]int64{0, 1, 1}, 2, true},
		"uneven":              {[]int64{3, 1}, 4, true},
		"all on one node":     {[]int64{0, 5}, 0, false},
		"nothing":             {[]int64{0, 0}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var nodes []query.Node
			for _, amount := range test.free {
				nodes = append(nodes, node(amount, 1))
			}
			got, ok := fragmented(nodes, gpu)
			if ok != test.ok || ok && (got.each != test.want || got.replicas != 1) {
				t.Errorf("got %s, %t; want one worker with %d, %t", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	d, err := render(examples.Glue, edit{name: "other", namespace: "team", image: "ray:1", size: &size{gpu, 4, 3}})
	if err != nil {
		t.Fatal(err)
	}
	if d.String() != "raycluster/other" || d.Namespace != "team" {
		t.Errorf("the document is %s in %q", d, d.Namespace)
	}
	type container struct {
		Image     string
		Resources struct{ Requests, Limits map[string]string }
	}
	type template struct {
		Spec struct{ Containers []container }
	}
	var got struct {
		Spec struct {
			HeadGroupSpec    struct{ Template template }
			WorkerGroupSpecs []struct {
				Replicas, MinReplicas, MaxReplicas int
				Template                           template
			}
		}
	}
	if err := yaml.Unmarshal(d.Raw, &got); err != nil {
		t.Fatal(err)
	}
	head, workers := got.Spec.HeadGroupSpec.Template.Spec.Containers[0], got.Spec.WorkerGroupSpecs[0]
	if diff := cmp.Diff(map[string]string{"cpu": "500m", "memory": "1Gi"}, head.Resources.Requests); diff != "" {
		t.Errorf("the head's requests (-want +got):\n%s", diff)
	}
	worker := workers.Template.Spec.Containers[0]
	if diff := cmp.Diff(map[string]string{"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "4"}, worker.Resources.Limits); diff != "" {
		t.Errorf("a worker's limits (-want +got):\n%s", diff)
	}
	if workers.Replicas != 3 || workers.MinReplicas != 3 || workers.MaxReplicas != 3 || head.Image != "ray:1" || worker.Image != "ray:1" {
		t.Errorf("the worker group is %+v, the head's image %q", workers, head.Image)
	}

	same, err := render(examples.Glue, edit{})
	if err != nil {
		t.Fatal(err)
	}
	original, err := examples.Read(examples.Glue)
	if err != nil {
		t.Fatal(err)
	}
	var want, have map[string]any
	if err := yaml.Unmarshal(original, &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(same.Raw, &have); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("without edits the example changed (-want +got):\n%s", diff)
	}
}
