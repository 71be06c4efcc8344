package appwrapper_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

// The demand of a wrapped RayCluster is known without custompodresources; with
// them the larger counts, and a declaration that is too low gives a warning.
func TestDemandIsTheLargerOfDeclaredAndTemplates(t *testing.T) {
	t.Parallel()
	cluster := fmt.Sprintf(rayCluster, "glue")
	declare := func(cpu string) string {
		return "\n      custompodresources:\n      - {replicas: 2, requests: {cpu: " + cpu + ", memory: 16G, nvidia.com/gpu: 1}, limits: {cpu: 3, memory: 16G, nvidia.com/gpu: 1}}"
	}
	for _, c := range []struct {
		name, more, warning string
		sets                []string
		cpu                 int64 // milli
	}{
		{"nothing declared", "", "", []string{"headgroup head 1", "small worker 1"}, 6000},
		{"as much as the templates ask", declare("3"), "", []string{"headgroup head 1", "small worker 1"}, 6000},
		{"a limit counts for a request of zero", declare("0"), "", []string{"headgroup head 1", "small worker 1"}, 6000},
		{"less", declare("1"), "declare cpu 2, but", []string{"headgroup head 1", "small worker 1"}, 6000},
		{"more", declare("4"), "", []string{"headgroup head 1", "small worker 1", "0.declared declared 2"}, 8000},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := read(t, v1beta1(item(cluster, c.more)))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			if got := sets(w); !slices.Equal(got, c.sets) {
				t.Errorf("%s: pod sets are %v, want %v", c.name, got, c.sets)
			}
			if got := (workload.Workload{PodSets: w.PodSets}).Requests()["cpu"]; got != c.cpu {
				t.Errorf("%s: demand is %d milli CPUs, want %d", c.name, got, c.cpu)
			}
			if got := strings.Join(w.Warnings, "|"); !strings.Contains(got, c.warning) || c.warning == "" && got != "" {
				t.Errorf("%s: warnings are %q, want %q", c.name, got, c.warning)
			}
			if w.Priority != 9 || w.Version != appwrapper.V1beta1 || w.Namespace != "team" {
				t.Errorf("%s: read as %+v", c.name, w)
			}
		})
	}
}

// Pods come from the templates of other kinds as well.
func TestPodsOfOtherKinds(t *testing.T) {
	t.Parallel()
	const template = `{metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}`
	for object, want := range map[string][]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 3, template: T}}":                                                                      {"0.deployment worker 3"},
		"{apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {parallelism: 4, completions: 2, template: T}}":                                                         {"0.job worker 2"},
		"{apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {template: T}}":                                                                                         {"0.job worker 1"},
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {replicas: 2, podManagementPolicy: Parallel, template: T}}":                                      {"0.statefulset worker 2"},
		"{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {containers: [{name: c, image: i}]}}":                                                                         {"0.pod worker 1"},
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: d}, spec: {replicatedJobs: [{replicas: 2, template: {spec: {parallelism: 3, template: T}}}]}}": {"0.jobset worker 6"},
		"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: d}, spec: {pytorchReplicaSpecs: {Master: {template: T}, Worker: {replicas: 2, template: T}}}}":      {"0.pytorchjob-0 worker 1", "0.pytorchjob-1 worker 2"},
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d}, spec: {replicas: 2, template: T}}":                                                                      {"0.replicaset worker 2"},
		"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: d}, spec: {tasks: [{replicas: 2, template: T}, {template: T}]}}":                                 {"0.job-0 worker 2", "0.job-1 worker 1"},
		"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: d}, spec: {entrypoint: e, submissionMode: HTTPMode, rayClusterSpec: {headGroupSpec: {template: T}}}}":         {"headgroup head 1"},
		"{apiVersion: ray.io/v1, kind: RayService, metadata: {name: d}, spec: {rayClusterConfig: {headGroupSpec: {template: T}}}}":                                            {"headgroup head 1"},
	} {
		t.Run(object, func(t *testing.T) {
			w, err := read(t, v1beta1(item(" "+strings.ReplaceAll(object, "T}", template+"}"), "")))
			if err != nil {
				t.Errorf("%s: %v", object, err)
				return
			}
			if got := sets(w); !slices.Equal(got, want) {
				t.Errorf("%s: pod sets are %v, want %v", object, got, want)
			}
		})
	}
}

// Pods of other kinds than Ray's ask for the overhead of their runtime class, too: Kubernetes
// charges the node with it.
func TestPodsHaveTheOverheadOfTheirRuntimeClass(t *testing.T) {
	t.Parallel()
	operator, err := ray.ReadOperator([]byte("runtimeClasses: {kata: {cpu: 250m}}"))
	if err != nil {
		t.Fatal(err)
	}
	const job = " {apiVersion: batch/v1, kind: Job, metadata: {name: d}, spec: {parallelism: 4, template: {spec: {restartPolicy: Never, POD, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}}"
	for name, c := range map[string]struct {
		pod        string
		millicores int64
		refusal    string
	}{
		"none":              {"hostname: h", 1000, ""},
		"known":             {"runtimeClassName: kata", 1250, ""},
		"stated":            {"runtimeClassName: gvisor, overhead: {cpu: 50m}", 1050, ""},
		"unknown":           {"runtimeClassName: gvisor", 0, `.spec.template.spec.runtimeClassName: is "gvisor", of which Muster does not know the overhead; give the pod's overhead`},
		"not the class's":   {"runtimeClassName: kata, overhead: {cpu: 50m}", 0, `.overhead: is not that of runtime class "kata"; remove it`},
		"without the class": {"overhead: {cpu: 50m}", 0, ".overhead: is set without runtimeClassName; remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := ray.Tree([]byte(v1beta1(item(strings.Replace(job, "POD", c.pod, 1), ""))))
			if err != nil {
				t.Fatal(err)
			}
			w, err := appwrapper.Read(operator, tree)
			switch {
			case c.refusal != "":
				if err == nil || !strings.Contains(err.Error(), c.refusal) || !errors.Is(err, ray.ErrInvalid) {
					t.Errorf("got %v, want %q", err, c.refusal)
				}
			case err != nil:
				t.Error(err)
			case w.PodSets[0].Template.Requests["cpu"] != c.millicores:
				t.Errorf("a pod asks for %d millicores, want %d", w.PodSets[0].Template.Requests["cpu"], c.millicores)
			}
		})
	}
}

// Of an unknown kind, room is reserved for what is declared; a missing declaration
// gives a warning.
func TestPodsOfUnknownKinds(t *testing.T) {
	t.Parallel()
	const thing = " {apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}"
	w, err := read(t, v1beta1(item(thing, "\n      custompodresources: [{replicas: 2, requests: {cpu: 3}}, {replicas: 0, requests: {cpu: 9}}]")))
	if err != nil {
		t.Fatal(err)
	}
	if got := sets(w); !slices.Equal(got, []string{"0.declared-0 declared 2"}) || w.PodSets[0].Template.Requests["cpu"] != 3000 {
		t.Errorf("pod sets are %v", w.PodSets)
	}
	if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "room is kept for the declared pods of Thing t, but Muster does not know them") {
		t.Errorf("warnings are %q", w.Warnings)
	}
	w, err = read(t, v1beta1(item(thing, ""), item(fmt.Sprintf(rayCluster, "a"), "")))
	if err != nil || len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "does not know which pods a Thing makes: nothing is reserved for them; declare them in custompodresources") {
		t.Errorf("warnings are %q, error %v", w.Warnings, err)
	}
}

// A wrapped RayCluster that tells Ray of GPUs which its pods do not have is named.
func TestOtherGPUsThanThePodsHave(t *testing.T) {
	t.Parallel()
	w, err := read(t, v1beta1(item(strings.Replace(fmt.Sprintf(rayCluster, "a"), "rayStartParams: {}", "rayStartParams: {num-gpus: '2'}", 1), "")))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(w.Warnings, func(s string) bool {
		return strings.Contains(s, `GenericItems[0].generictemplate.spec.`) && strings.Contains(s, `rayStartParams.num-gpus: is "2", but the limits of its Ray container have 0 GPUs`)
	}) {
		t.Errorf("warnings are %q", w.Warnings)
	}
}

// Two pods with a GPU each are declared, and the templates have one: the second GPU is
// kept once, and not for each declared pod, so the gang fits two nodes of one GPU.
func TestADeclaredGPUIsKeptOnce(t *testing.T) {
	t.Parallel()
	cluster := strings.ReplaceAll(fmt.Sprintf(rayCluster, "glue"), `nvidia.com/gpu: "2"`, `nvidia.com/gpu: "1"`)
	w, err := read(t, v1beta1(item(cluster, "\n      custompodresources:\n      - {replicas: 2, requests: {cpu: 3, memory: 16G, nvidia.com/gpu: 1}, limits: {cpu: 3, memory: 16G, nvidia.com/gpu: 1}}")))
	if err != nil {
		t.Fatal(err)
	}
	if got := sets(w); !slices.Equal(got, []string{"headgroup head 1", "small worker 1", "0.declared declared 1"}) {
		t.Errorf("pod sets are %v", got)
	}
	if got := (workload.Workload{PodSets: w.PodSets}).Requests()["nvidia.com/gpu"]; got != 2 {
		t.Errorf("%d GPUs are kept, want the 2 that are declared", got)
	}
}
