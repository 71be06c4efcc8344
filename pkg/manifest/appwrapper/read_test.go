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
