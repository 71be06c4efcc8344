package reconcile

import (
	"encoding/json"
	"maps"
	"testing"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// TestAWrappedJobReportsThePodsThatItNeedsYet: the places of pods that have succeeded are given
// back, those of another wrapped object are kept.
func TestAWrappedJobReportsThePodsThatItNeedsYet(t *testing.T) {
	t.Parallel()
	const spec = `"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 4, "completions": 4, "template": {"spec": {}}}`
	var b bundle.Bundle
	for _, name := range []string{"a", "b"} {
		b.Items = append(b.Items, bundle.Item{
			MakesPods: true, Object: json.RawMessage(`{` + spec + `, "metadata": {"name": "` + name + `"}}`),
			Templates: []bundle.Template{{Path: []string{"spec", "template"}, PodSet: name}},
		})
	}
	manifest, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p := play(t)
	p.Command(&event.GangCommand{
		Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Order: 1, State: event.Present, Kind: workload.KindAppWrapper,
		Namespace: "n", Name: "w", Manifest: manifest, ObjectPolicy: workload.ObjectPolicy{Kinds: []string{workload.AllKinds}},
	})
	if err := p.see(t, 2); err != nil || !p.status.Created || p.status.Sizes != nil {
		t.Fatalf("the status is %+v, %v", p.status, err)
	}
	for id, item := range p.cluster.items {
		status := `{}`
		if id.Name == "a" {
			status = `{"succeeded": 3, "active": 1}`
		}
		if err := json.Unmarshal([]byte(`{`+spec+`, "status": `+status+`}`), &item.Content); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"a": 1}
	if err := p.see(t, 1); err != nil || !maps.Equal(p.status.Sizes, want) || !maps.Equal(p.status.Keeps, want) {
		t.Errorf("reported are %v and %v, %v; want %v", p.status.Sizes, p.status.Keeps, err, want)
	}
}

// TestSizesAreKnownWithoutTheirCluster: while a wrapped RayJob has no RayCluster, or a second one,
// the pods that a Job needs yet are reported with the sizes that were known of the RayJob.
func TestSizesAreKnownWithoutTheirCluster(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "1."} {
		p := play(t)
		p.cluster.clusters = []kubernetes.Object{{
			Kind: ray.RayCluster, Namespace: "n", Workload: "w", Attempt: 1, Owned: true, Controller: gang.Controller{Kind: ray.RayJob, Name: "train"},
			Sizes: map[string]int{"g": 2}, Keeps: map[string]int{"g": 3},
		}}
		of := p.cluster.clusters[0]
		command := &event.GangCommand{Workload: "w", Cluster: "c", Attempt: 1, State: event.Present, Kind: workload.KindAppWrapper, Namespace: "n", Name: "w"}
		p.Command(command)
		pass := p.newPass(p.workloads.get("w"), command)
		w := &wrappedObjects{items: []*wrappedItem{
			{item: bundle.Item{PodSetPrefix: prefix}, id: bundle.Identity{APIVersion: ray.GroupVersion, Kind: ray.RayJob, Name: "train"}},
			{item: bundle.Item{Templates: []bundle.Template{{PodSet: "job"}}}, id: bundle.Identity{APIVersion: "batch/v1", Kind: "Job", Name: "job"}},
		}}
		for i, step := range []struct {
			clusters           []kubernetes.Object
			left, sizes, keeps map[string]int
		}{
			{nil, nil, nil, nil},
			{[]kubernetes.Object{of}, nil, map[string]int{prefix + "g": 2}, map[string]int{prefix + "g": 3}},
			{nil, nil, map[string]int{prefix + "g": 2}, map[string]int{prefix + "g": 3}},
			{nil, map[string]int{"job": 1}, map[string]int{prefix + "g": 2, "job": 1}, map[string]int{prefix + "g": 3, "job": 1}},
			{[]kubernetes.Object{of, of}, nil, map[string]int{prefix + "g": 2}, map[string]int{prefix + "g": 3}},
		} {
			p.cluster.clusters = step.clusters
			sizes, keeps := w.sizes(pass, step.left)
			if !maps.Equal(sizes, step.sizes) || !maps.Equal(keeps, step.keeps) || (sizes == nil) != (step.sizes == nil) {
				t.Errorf("step %d: sizes %v and %v, want %v and %v", i, sizes, keeps, step.sizes, step.keeps)
			}
			pass.status.Sizes, pass.status.Keeps = sizes, keeps
		}
	}
}
