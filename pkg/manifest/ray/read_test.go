package ray

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// glue is a RayCluster with one worker group; %s is more of the group.
const glue = `apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: glue
  namespace: research
spec:
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers:
        - name: ray-head
          image: rayproject/ray:2.52.0
          resources:
            limits: {cpu: "2", memory: 16G}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 2
    maxReplicas: 4
    rayStartParams: {}
    template:
      spec:
        nodeSelector: {zone: a}
        containers:
        - name: ray-worker
          image: rayproject/ray:2.52.0
          resources:
            limits: {cpu: "4", memory: 16G, nvidia.com/gpu: 2}
`

// train is a RayJob around the same cluster.
var train = `apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: train
spec:
  entrypoint: python train.py
  rayClusterSpec:
` + indent(glue[strings.Index(glue, "  headGroupSpec"):])

// serve is a RayService around the same cluster.
var serve = `apiVersion: ray.io/v1
kind: RayService
metadata:
  name: serve
spec:
  serveConfigV2: 'applications: []'
  rayClusterConfig:
` + indent(glue[strings.Index(glue, "  headGroupSpec"):])

// nightly is a RayCronJob of the same job.
var nightly = `apiVersion: ray.io/v1
kind: RayCronJob
metadata:
  name: nightly
spec:
  schedule: '0 3 * * *'
  jobTemplate:
` + indent(train[strings.Index(train, "  entrypoint"):])

func indent(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return "  " + strings.Join(lines[:len(lines)-1], "  ")
}

// edit replaces a part of a manifest, which must be there once.
func edit(t testing.TB, manifest string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(manifest, pairs[i]) != 1 {
			t.Fatalf("%q is %d times in the manifest", pairs[i], strings.Count(manifest, pairs[i]))
		}
		manifest = strings.Replace(manifest, pairs[i], pairs[i+1], 1)
	}
	return manifest
}

func TestReadCluster(t *testing.T) {
	t.Parallel()
	got, err := Read([]byte(glue))
	if err != nil {
		t.Fatal(err)
	}
	want := Object{
		Kind: RayCluster, APIVersion: "ray.io/v1", Namespace: "research", Name: "glue", Manifest: got.Manifest,
		PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{
				Requests: resource.List{"cpu": 2000, "memory": 16e9, "pods": 1},
				Asks: [][]workload.ContainerAsk{{
					{Name: "ray-head", Requests: resource.List{"cpu": 2000, "memory": 16e9}, Limits: resource.List{"cpu": 2000, "memory": 16e9}},
				}},
			}},
			{Name: "gpu", Role: workload.RoleWorker, Count: 2, Template: workload.Template{
				Requests: resource.List{"cpu": 4000, "memory": 16e9, "nvidia.com/gpu": 2, "pods": 1},
				Asks: [][]workload.ContainerAsk{{
					{Name: "wait-gcs-ready", Kind: workload.AskInit, Requests: resource.List{"cpu": 200, "memory": 256 << 20}, Limits: resource.List{"cpu": 200, "memory": 256 << 20}},
					{Name: "ray-worker", Requests: resource.List{"cpu": 4000, "memory": 16e9, "nvidia.com/gpu": 2}, Limits: resource.List{"cpu": 4000, "memory": 16e9, "nvidia.com/gpu": 2}},
				}},
				NodeSelector: map[string]string{"zone": "a"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	again, err := Read(got.Manifest)
	if err != nil {
		t.Fatalf("the manifest as JSON is refused: %v", err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("read from YAML and from JSON (-YAML +JSON):\n%s", diff)
	}
}

// TestCounts: the defaults of the custom resource and the clamps of KubeRay.
func TestCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		group string
		want  string
	}{
		{"replicas: 2\n    maxReplicas: 4", "headgroup 1, gpu 2, nvidia.com/gpu 4"},
		{"minReplicas: 3", "headgroup 1, gpu 3, nvidia.com/gpu 6"},                               // replicas left out
		{"replicas: null\n    minReplicas: 1", "headgroup 1, gpu 1, nvidia.com/gpu 2"},           // null is left out
		{"replicas: 9\n    maxReplicas: 4", "headgroup 1, gpu 4, nvidia.com/gpu 8"},              // clamped from above
		{"replicas: 1\n    minReplicas: 2", "headgroup 1, gpu 2, nvidia.com/gpu 4"},              // and from below
		{"replicas: 2\n    numOfHosts: 3", "headgroup 1, gpu 6, nvidia.com/gpu 12"},              // hosts of a replica
		{"replicas: 2\n    suspend: true", "headgroup 1, gpu 0, nothing"},                        // a suspended group
		{"replicas: 0", "headgroup 1, gpu 0, nothing"},                                           // a group without pods
		{"replicas: 9999\n    maxReplicas: 9999", "headgroup 1, gpu 9999, nvidia.com/gpu 19998"}, // the largest gang
	} {
		t.Run(c.group, func(t *testing.T) {
			object, err := Read([]byte(edit(t, glue, "replicas: 2\n    maxReplicas: 4", c.group)))
			if err != nil {
				t.Errorf("%q: %v", c.group, err)
				return
			}
			if got := summary(object.PodSets); got != c.want {
				t.Errorf("%q makes %s, want %s", c.group, got, c.want)
			}
		})
	}
}

func TestReadJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		manifest string
		want     string
	}{
		{"submitted by a pod", train, "headgroup 1, gpu 2, submitter 1, nvidia.com/gpu 4"},
		{"submitted by the operator", edit(t, train, "spec:\n  entry", "spec:\n  submissionMode: HTTPMode\n  entry"), "headgroup 1, gpu 2, nvidia.com/gpu 4"},
		{"autoscaled", edit(t, train, "  rayClusterSpec:\n", "  rayClusterSpec:\n    enableInTreeAutoscaling: true\n"), "headgroup 1, gpu 4, submitter 1, nvidia.com/gpu 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			object, err := Read([]byte(c.manifest))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			if got := summary(object.PodSets); got != c.want {
				t.Errorf("%s: makes %s, want %s", c.name, got, c.want)
			}
		})
	}
}

// TestAutoscalerOverride: the user's resources replace the sidecar's wholly.
func TestAutoscalerOverride(t *testing.T) {
	t.Parallel()
	for resources, want := range map[string]int64{"{requests: {cpu: 250m}}": 2250, "{}": 2000, "null": 2500} {
		t.Run(resources, func(t *testing.T) {
			object, err := Read([]byte(edit(t, glue, "spec:\n  headGroup",
				"spec:\n  enableInTreeAutoscaling: true\n  autoscalerOptions: {resources: "+resources+"}\n  headGroup")))
			if err != nil {
				t.Errorf("%s: %v", resources, err)
				return
			}
			if got := object.PodSets[0].Template.Requests[resource.CPU]; got != want {
				t.Errorf("%s: the head asks %d millicores, want %d", resources, got, want)
			}
		})
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	object, err := Read([]byte(edit(t, glue, "name: glue\n", "generateName: glue-\n")))
	if err != nil {
		t.Fatal(err)
	}
	one, other := event.WorkloadID("test", "1"), event.WorkloadID("test", "2")
	first, again, second := Name(object, one), Name(object, one), Name(object, other)
	if first != again || first == second {
		t.Errorf("names %s, %s and for another workload %s: want one per workload", first, again, second)
	}
	named, err := Named(object, one)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Read(named.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if read.Name != first || read.GenerateName != "" || !strings.HasPrefix(read.Name, "glue-") {
		t.Errorf("the named manifest has name %q and generateName %q, want %q and none", read.Name, read.GenerateName, first)
	}
}

// TestManifestIsUntouched: what Muster has no opinion on comes through.
func TestManifestIsUntouched(t *testing.T) {
	t.Parallel()
	object, err := Read([]byte(edit(t, glue, "rayStartParams: {}\n    template:\n      spec:\n        containers:",
		"rayStartParams: {dashboard-host: '<0.0.0.0> & é'}\n    template:\n      spec:\n        terminationGracePeriodSeconds: 9007199254740993\n        containers:")))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"<0.0.0.0> & é"`, `9007199254740993`} {
		if !strings.Contains(string(object.Manifest), part) {
			t.Errorf("%s is not in %s", part, object.Manifest)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range samples(f) {
		f.Add([]byte(text))
	}
	f.Add([]byte(glue))
	f.Add([]byte(train))
	f.Add([]byte("a: &a [*a]"))
	for _, hostile := range []string{"1e99999999", "'1e-99999999'", "-1", "9e18", "[1]"} {
		f.Add([]byte(strings.Replace(glue, "spec:", "spec:\n  autoscalerOptions: {resources: {limits: {memory: "+hostile+"}}}", 1)))
	}
	f.Add(gang(`"annotations": {"kueue.x-k8s.io/podset-required-topology": "block", "muster.dev/podset-slice-required-topology": "rack"}`, affinity("podAntiAffinity", all), ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		begun := time.Now()
		object, err := Read(data)
		if took := time.Since(begun); took > 5*time.Second {
			t.Fatalf("took %s", took)
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) || len(err.Error()) > 2000 {
				t.Fatalf("error of %d bytes: %v", len(err.Error()), err)
			}
			return
		}
		checkObject(t, object)
	})
}

// checkObject holds whatever Read accepts against what the others rely on.
func checkObject(t *testing.T, object Object) {
	t.Helper()
	pods, names := 0, map[string]bool{}
	for _, set := range object.PodSets {
		pods += set.Count
		empty := set.Count == 0 && set.Role != workload.RoleWorker // a worker group without pods may grow
		if set.Count < 0 || empty || names[set.Name] || set.Template.Requests[resource.Pods] != 1 {
			t.Fatalf("pod set %+v", set)
		}
		names[set.Name] = true
		for name, amount := range set.Template.Requests {
			if amount < 0 {
				t.Fatalf("pod set %s asks %d of %s", set.Name, amount, name)
			}
		}
	}
	if !names[HeadGroup] || pods > MaxPods+1 || !json.Valid(object.Manifest) {
		t.Fatalf("%d pods, sets %v, manifest %s", pods, names, object.Manifest)
	}
	named, err := Named(object, "workload")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(named.Manifest)
	if err != nil {
		t.Fatalf("read again: %v", err)
	}
	if diff := cmp.Diff(named, again); diff != "" {
		t.Fatalf("read again (-first +second):\n%s", diff)
	}
	if _, err := Stamp(named.Manifest, named.Kind, stampOf("workload", named.Name)); err != nil {
		t.Fatal(err)
	}
}

func stampOf(id workload.ID, name string) StampInput {
	return StampInput{
		Workload: id, Cluster: "c1", Attempt: 2, Epoch: 7, Queue: "default", Namespace: "research", Name: name,
		Placements: []workload.Placement{{PodSet: SubmitterGroup, Node: "n1", Pods: 1}},
	}
}
