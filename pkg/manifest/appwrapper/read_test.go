package appwrapper_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

func read(t *testing.T, manifest string) (appwrapper.Wrapper, error) {
	t.Helper()
	tree, err := ray.Tree([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return appwrapper.Read(ray.Shipped(), tree)
}

const rayCluster = `
          apiVersion: ray.io/v1
          kind: RayCluster
          metadata: {name: %s}
          spec:
            headGroupSpec:
              rayStartParams: {}
              template: {spec: {containers: [{name: head, image: ray, resources: {requests: {cpu: "2", memory: 16G}, limits: {cpu: "2", memory: 16G}}}]}}
            workerGroupSpecs:
            - {groupName: small, replicas: 1, minReplicas: 1, maxReplicas: 1, rayStartParams: {},
               template: {spec: {containers: [{name: worker, image: ray, resources: {limits: {cpu: "4", memory: 16G, nvidia.com/gpu: "2"}}}]}}}`

func v1beta1(items ...string) string {
	return "apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\nmetadata: {name: aw, namespace: team}\nspec:\n  priority: 9\n  resources:\n    GenericItems:" +
		strings.Join(items, "")
}

func item(object, more string) string {
	return "\n    - replicas: 1" + more + "\n      generictemplate:" + object
}

func sets(w appwrapper.Wrapper) []string {
	var all []string
	for _, s := range w.PodSets {
		all = append(all, fmt.Sprintf("%s %s %d", s.Name, s.Role, s.Count))
	}
	return all
}

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

func TestV1beta2(t *testing.T) {
	t.Parallel()
	w, err := read(t, `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata:
  name: aw
  labels: {kueue.x-k8s.io/queue-name: user-queue}
  annotations:
    workload.codeflare.dev.appwrapper/warmupGracePeriodDuration: 4m
    workload.codeflare.dev.appwrapper/admissionGracePeriodDuration: 1m
    workload.codeflare.dev.appwrapper/terminalExitCodes: "3"
spec:
  suspend: true
  components:
  - podSets: [{replicas: 2, path: "template.spec.parts[0].pod"}]
    template:
      apiVersion: example.com/v1
      kind: Thing
      metadata: {name: t}
      spec: {parts: [{pod: {spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]}}}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := sets(w); !slices.Equal(got, []string{"0.thing worker 2"}) || w.Queue != "user-queue" || w.Version != appwrapper.V1beta2 {
		t.Errorf("read as %v of %s in queue %q", got, w.Version, w.Queue)
	}
	if w.Life.ReadyDeadline != workload.Duration(5*time.Minute) {
		t.Errorf("ready deadline is %s", time.Duration(w.Life.ReadyDeadline))
	}
	if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "spec.suspend: does nothing") {
		t.Errorf("warnings are %q", w.Warnings)
	}
	if tolerance := w.Life.Tolerance; tolerance == nil || !slices.Equal(tolerance.TerminalExitCodes, []int32{3}) {
		t.Errorf("tolerance is %+v", tolerance)
	}
}

// The annotations that ask for fault tolerance act; those that do nothing, and
// values that mean nothing, are named.
func TestFaultToleranceAnnotations(t *testing.T) {
	t.Parallel()
	retries := 2
	for name, c := range map[string]struct {
		annotations string
		want        *workload.Tolerance
		warnings    []string
	}{
		"all that act": {
			"retryLimit: '2', AW/retryPausePeriodDuration: 5s, AW/failureGracePeriodDuration: 20s, AW/forcefulDeletionGracePeriodDuration: 3m, AW/terminalExitCodes: '3,10', AW/retryableExitCodes: '20, 30'",
			&workload.Tolerance{
				Retries: &retries, RetryFailed: true, Pause: seconds(5), LossDeadline: seconds(20), ForceAfter: seconds(180),
				TerminalExitCodes: []int32{3, 10}, RetryableExitCodes: []int32{20, 30},
			}, nil,
		},
		"what does nothing": {"deletionOnFailureGracePeriodDuration: 1m, AW/other: x", nil,
			[]string{"deletionOnFailureGracePeriodDuration]: does nothing", "other]: does nothing"}},
		"a stay after success": {"successTTLDuration: 168h", &workload.Tolerance{SuccessTTL: workload.Duration(168 * time.Hour)}, nil},
		"too long a stay":      {"successTTLDuration: 169h", nil, []string{`successTTLDuration]: is "169h" and does nothing; want a duration from 0s to 168h`}},
		"what means nothing": {"retryLimit: often, AW/retryPausePeriodDuration: 25h, AW/terminalExitCodes: 'one,0,7'", &workload.Tolerance{TerminalExitCodes: []int32{7}},
			[]string{`retryLimit]: is "often" and does nothing; want a whole number`, `retryPausePeriodDuration]: is "25h" and does nothing; want a duration`, `"one" is no exit code`, `"0" is no exit code`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := read(t, "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata:\n  name: aw\n  annotations: {"+
				strings.ReplaceAll("AW/"+c.annotations, "AW/", "workload.codeflare.dev.appwrapper/")+"}\n"+
				"spec: {components: [{template: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}}]}\n")
			if err != nil {
				t.Fatal(err)
			}
			if stays := w.SuccessTTL != nil && *w.SuccessTTL == 168*time.Hour; stays != strings.Contains(c.annotations, "168h") {
				t.Errorf("it stays for %v after success", w.SuccessTTL)
			}
			if diff := cmp.Diff(c.want, w.Life.Tolerance); diff != "" {
				t.Errorf("tolerance (-want +got):\n%s", diff)
			}
			if len(w.Warnings) != len(c.warnings) {
				t.Errorf("warnings are %q, want %q", w.Warnings, c.warnings)
			}
			for _, want := range c.warnings {
				if !slices.ContainsFunc(w.Warnings, func(got string) bool { return strings.Contains(got, want) }) {
					t.Errorf("warnings are %q, want %q", w.Warnings, want)
				}
			}
		})
	}
}

func seconds(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Second) }

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

// Every accepted field acts or earns a warning.
func TestFieldsWithoutEffectAreNamed(t *testing.T) {
	t.Parallel()
	manifest := v1beta1(item(fmt.Sprintf(rayCluster, "a"), "\n      minavailable: 2\n      allocated: 1\n      priority: 3\n      priorityslope: 0.5")) +
		"\n    Items: []\n    metadata: {}\n  service: {spec: {a: 1}}\n  selector: {matchLabels: {a: b}}\n  priorityslope: 1.5\n  schedulingSpec:\n    minAvailable: 2\n" +
		"    nodeSelector: {a: b}\n    requeuing: {timeInSeconds: 30, growthType: linear, maxTimeInSeconds: 60, initialTimeInSeconds: 7, numRequeuings: 1, maxNumRequeuings: 4}\n    dispatchDuration: {limit: 120, expected: 60}\n"
	w, err := read(t, manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"GenericItems[0].minavailable", "GenericItems[0].allocated", "GenericItems[0].priority", "spec.selector", "GenericItems[0].priorityslope", "spec.service", "spec.priorityslope",
		"schedulingSpec.nodeSelector", "requeuing.growthType", "requeuing.maxTimeInSeconds", "requeuing.initialTimeInSeconds", "requeuing.numRequeuings",
		"dispatchDuration.expected",
	} {
		if !slices.ContainsFunc(w.Warnings, func(s string) bool { return strings.Contains(s, field+": does nothing") }) {
			t.Errorf("no warning of %s in %q", field, w.Warnings)
		}
	}
	if len(w.Warnings) != 13 {
		t.Errorf("%d warnings: %q", len(w.Warnings), w.Warnings)
	}
	if w.Life.ReadyDeadline != workload.Duration(30*time.Second) || w.Life.MaxRunTime != workload.Duration(2*time.Minute) {
		t.Errorf("life is %+v", w.Life)
	}
	if w.Life.Tolerance == nil || *w.Life.Tolerance.Retries != 4 {
		t.Errorf("tolerance is %+v", w.Life.Tolerance)
	}
}

// In MCAD 0 is no limit; a gang that is queued again without end is what a queue's rule is for.
func TestNoLimitOfRequeuingsIsTheQueuesRule(t *testing.T) {
	t.Parallel()
	w, err := read(t, v1beta1(item(fmt.Sprintf(rayCluster, "a"), ""))+"\n  schedulingSpec: {minAvailable: 2, requeuing: {timeInSeconds: 30, maxNumRequeuings: 0}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if w.Life.Tolerance != nil || w.Life.ReadyDeadline != workload.Duration(30*time.Second) {
		t.Errorf("life is %+v, want the time and no number of requeues", w.Life)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	config := " {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
	cluster := fmt.Sprintf(rayCluster, "a")
	for _, c := range []struct{ manifest, want string }{
		{
			v1beta1(item(config, "\n      custompodresources: [{replicas: 1, requests: {nvidia.com/gpu: 0.5}}]")),
			`GenericItems[0].custompodresources[0].requests.nvidia.com/gpu: "0.5" is not a whole number; want whole ones, such as "1"`,
		},
		{
			v1beta1(item(" {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1.5}}}]}}}}", "")),
			`resources.limits.nvidia.com/gpu: "1.5" is not a whole number; want whole ones, such as "1"`,
		},
		{v1beta1(item(config, "")), "wraps nothing that makes pods"},
		{strings.Replace(v1beta1(item(cluster, "")), "name: aw", "labels: {kueue.x-k8s.io/priority-class: urgent}, name: aw", 1),
			`spec.priority: is 9, and a label names the priority class "urgent"; want one of them`},
		{v1beta1(item(cluster, ""), item(cluster, "")), "wrap each object once"},
		{v1beta1(item(" {apiVersion: workload.codeflare.dev/v1beta1, kind: AppWrapper, metadata: {name: c}}", "")), "AppWrappers are not nested"},
		{v1beta1(item(" {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}", "")), `GenericItems[0].generictemplate.metadata.namespace: is "other"; remove it`},
		{v1beta1(item(" {apiVersion: v1, kind: List, metadata: {name: c}, items: []}", "")), "wrap each object on its own"},
		{v1beta1(item(" {apiVersion: v1, kind: ConfigMap, metadata: {}}", "")), "metadata.name: is missing; want a name"},
		{v1beta1(item(" {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: c}}", "")), "is DaemonSet; remove it"},
		{v1beta1(item(" {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: c}, spec: {replicas: 2}}", "")), "podManagementPolicy: is not Parallel; want Parallel"},
		{v1beta1(item(" {apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {replicas: many}}", "")), `spec.replicas: is "many"; want a whole number`},
		{v1beta1(item(strings.Replace(cluster, "groupName: small", "groupName: headgroup", 1), "")), "GenericItems[0].generictemplate.spec.workerGroupSpecs[0].groupName"},
		{v1beta1(item(cluster, "")) + "\n  schedulingSpec: {minAvailable: 7}", "minAvailable: is 7, but the wrapped objects make 2 pods; lower it"},
		{v1beta1(item(cluster, ""), item(" {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 5}}", "")), "minMember: is 5, but the AppWrapper makes 2 pods"},
		{"apiVersion: v2\nkind: AppWrapper\nmetadata: {name: a}\nspec: {}", `apiVersion: "v2" is not known`},
		{"apiVersion: mcad.ibm.com/v1beta1\nkind: AppWrapper\nmetadata: {name: a}\nspec: {resources: {GenericItems: []}}", "GenericItems: is empty; want at least one"},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := read(t, c.manifest)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
				return
			}
			if !errors.Is(err, appwrapper.ErrInvalid) && !errors.Is(err, ray.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}

// Two Ray objects in one AppWrapper have pod sets of their own.
func TestSeveralRayObjects(t *testing.T) {
	t.Parallel()
	w, err := read(t, v1beta1(item(fmt.Sprintf(rayCluster, "a"), ""), item(fmt.Sprintf(rayCluster, "b"), "")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0.headgroup head 1", "0.small worker 1", "1.headgroup head 1", "1.small worker 1"}
	if got := sets(w); !slices.Equal(got, want) {
		t.Errorf("pod sets are %v, want %v", got, want)
	}
	stamped, err := w.Bundle.Stamp(w.Bundle.Items[1], ray.StampInput{Workload: "w", Cluster: "c", Attempt: 1, Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"muster.dev/pod-set":"1.headgroup"`, `"muster.dev/pod-set":"1.small"`, `"muster.dev/placement"`, `"name":"b"`} {
		if !strings.Contains(string(stamped), part) {
			t.Errorf("the stamped object lacks %s: %s", part, stamped)
		}
	}
}

// The affinity of each of two Ray objects names its own pod sets by their names in the
// AppWrapper.
func TestAffinityOfSeveralRayObjects(t *testing.T) {
	t.Parallel()
	term := func(kind, key, group string) string {
		return fmt.Sprintf("%s: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, labelSelector: {matchLabels: {ray.io/group: %s}}, matchLabelKeys: [ray.io/cluster]}]}", kind, key, group)
	}
	object := strings.Replace(rayCluster, "template: {spec: {containers: [{name: worker,",
		"template: {spec: {affinity: {"+term("podAffinity", "rack", "headgroup")+", "+term("podAntiAffinity", "kubernetes.io/hostname", "small")+"}, containers: [{name: worker,", 1)
	w, err := read(t, v1beta1(item(fmt.Sprintf(object, "a"), ""), item(fmt.Sprintf(object, "b"), "")))
	if err != nil {
		t.Fatal(err)
	}
	for i, prefix := range []string{"0.", "1."} {
		workers := w.PodSets[2*i+1]
		want := workload.Template{
			Together: []workload.Together{{TopologyKey: "rack", PodSets: []string{prefix + "headgroup"}}},
			Apart:    []workload.Apart{{TopologyKey: "kubernetes.io/hostname", PodSets: []string{prefix + "small"}}},
		}
		if diff := cmp.Diff(want.Together, workers.Template.Together); diff != "" {
			t.Errorf("affinity of %s (-want +got):\n%s", workers.Name, diff)
		}
		if diff := cmp.Diff(want.Apart, workers.Template.Apart); diff != "" {
			t.Errorf("anti-affinity of %s (-want +got):\n%s", workers.Name, diff)
		}
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
