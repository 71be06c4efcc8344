package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// label adds a pod that a tenant has labelled as a placeholder pod.
func (c *cluster) label(namespace, name string, of workload.ID, request, scheduler string) {
	id := bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
	c.items[id] = &kubernetes.Wrapped{Object: kubernetes.Object{Kind: "Pod", Namespace: namespace, Name: name, UID: "uid-" + namespace + name}, Content: map[string]any{
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{kube.PlaceholderLabel: string(of)}, "annotations": map[string]any{requestOfKey: request},
		},
		"spec": map[string]any{"schedulerName": scheduler},
	}}
}

func (c *cluster) hasPod(namespace, name string) bool {
	return c.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}] != nil
}

// What may not be deleted, or was made by no dispatcher, keeps no gang from showing itself, and
// queue-manager is asked few questions about it.
func TestPodsThatMayNotBeDeletedHoldNothingUp(t *testing.T) {
	t.Parallel()
	p := play(t)
	asked := map[workload.ID]int{}
	p.SetTruth(func(_ context.Context, id workload.ID) (*workload.Record, error) { asked[id]++; return nil, nil })
	p.cluster.label("private", "served", "served", "r", "default-scheduler")
	for i := range 3 * mostAskedNow {
		name := fmt.Sprintf("kept-%d", i)
		p.cluster.label("private", name, workload.ID(name), "r", kubernetes.PlaceholderScheduler)
		p.cluster.answers["delete "+name] = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("no right"))
	}
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	if got := p.shown(); len(got) != 3 {
		t.Fatalf("shown are %v, want the three pods of w", got)
	}
	if len(asked) != mostAskedOf {
		t.Errorf("asked about %v, want %d pods of a namespace", asked, mostAskedOf)
	}
	for range 3 * mostAskedNow {
		p.lookAt(t, "w")
	}
	p.Sweep(t.Context(), func(_ context.Context, id workload.ID) (*workload.Record, error) { asked[id]++; return nil, nil })
	for id, times := range asked {
		if times > 1 && id != "w" {
			t.Errorf("asked %d times about %s, which may not be deleted", times, id)
		}
	}
	if asked["served"] > 0 || !p.cluster.hasPod("private", "served") {
		t.Error("a pod of another scheduler was asked about or deleted")
	}
}

// Pods of another namespace are none of the gang's, whatever they say.
func TestPodsOfAnotherNamespaceAreNotTheGangs(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.SetTruth(func(context.Context, workload.ID) (*workload.Record, error) {
		return nil, errors.New("queue-manager is away")
	})
	c := showCommand("w", 1)
	for i := range 3 {
		p.cluster.label("other", fmt.Sprintf("ppt-%s-workers-%d", c.Provision.Name, i), "w", c.Provision.Name, kubernetes.PlaceholderScheduler)
	}
	p.Command(c)
	p.lookAt(t, "w")
	for i := range 3 {
		name := fmt.Sprintf("ppt-%s-workers-%d", c.Provision.Name, i)
		if !p.cluster.hasPod("n", name) || p.cluster.hasPod("other", name) {
			t.Errorf("%s: created %v, deleted %v", name, p.cluster.created, p.cluster.deleted)
		}
	}
	p.cluster.label("other", "late", "w", c.Provision.Name, kubernetes.PlaceholderScheduler)
	p.Sweep(t.Context(), func(context.Context, workload.ID) (*workload.Record, error) {
		return &workload.Record{Workload: workload.Workload{Namespace: "n"}}, nil
	})
	if p.cluster.hasPod("other", "late") || len(p.shown()) != 3 {
		t.Errorf("after the sweep %v are shown, and %v was deleted", p.shown(), p.cluster.deleted)
	}
}

// A gang that has started, or is forgotten, shows itself no more: a pod that names it blocks no
// other, and is swept. So is one of which there is no command.
func TestAGangThatRunsBlocksNoOther(t *testing.T) {
	t.Parallel()
	for _, state := range []string{event.Present, event.Absent, event.Forgotten, ""} {
		t.Run("command "+state, func(t *testing.T) {
			p := play(t)
			command := showCommand("w", 1)
			truth := func(_ context.Context, id workload.ID) (*workload.Record, error) {
				if id != "w" {
					return nil, nil
				}
				return &workload.Record{Workload: workload.Workload{Namespace: "n"}, Phase: workload.Running, Provisioning: &workload.Provisioning{
					Open: true, Name: command.Provision.Name, Class: workload.PlaceholderClass,
				}}, nil
			}
			p.cluster.label("n", "left", "w", command.Provision.Name, kubernetes.PlaceholderScheduler)
			if command.State = state; state != "" {
				p.Command(command)
			}
			p.Sweep(t.Context(), truth)
			if p.cluster.hasPod("n", "left") {
				t.Errorf("command %q: the sweep leaves the pod", state)
			}
			p.cluster.label("n", "left", "w", command.Provision.Name, kubernetes.PlaceholderScheduler)
			p.SetTruth(truth)
			p.Command(showCommand("next", 2))
			p.lookAt(t, "next")
			if got := p.shown(); len(got) != 3 || p.cluster.hasPod("n", "left") {
				t.Errorf("command %q: %v are shown, %v was deleted", state, got, p.cluster.deleted)
			}
		})
	}
}

// A placeholder pod that does not go, as for a finalizer, takes no place. The status names it,
// and the gang starts beside it after a while.
func TestAPlaceholderThatStaysKeepsTheGangForAWhile(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	stays := p.shown()[0]
	p.cluster.finalized = map[string]bool{stays: true}
	present := showCommand("w", 2)
	present.State, present.PodSets = event.Present, []workload.PodSet{{Name: "head", Count: 1}, {Name: "workers", Count: 3}}
	p.Command(present)
	p.lookAt(t, "w")
	if p.cluster.objects["r"] != nil || !strings.Contains(p.status.Message, stays) {
		t.Fatalf("at first the object is %+v, and the status says %q", p.cluster.objects["r"], p.status.Message)
	}
	p.clock = p.clock.Add(hideWithin)
	p.lookAt(t, "w")
	if p.cluster.objects["r"] != nil {
		t.Fatal("the object is created too early")
	}
	p.clock = p.clock.Add(1)
	p.lookAt(t, "w")
	if p.cluster.objects["r"] == nil || p.status.Message != "" {
		t.Errorf("the object is not created, and the status says %q", p.status.Message)
	}
}

// The pod of another party that has the name of a placeholder pod stays, and the request fails
// for it, as for a PodTemplate.
func TestAForeignPodOfThatNameEndsTheRequest(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := showCommand("w", 1)
	name := "ppt-" + command.Provision.Name + "-workers-1"
	p.cluster.label("n", name, "", "", "default-scheduler")
	p.Command(command)
	p.lookAt(t, "w")
	p.wantRequest(t, event.RequestFailed, "kubectl delete pods -n n "+name)
	if !p.cluster.hasPod("n", name) || slices.Contains(p.cluster.created, name) {
		t.Error("the foreign pod does not stay")
	}
}

// A webhook that changes the scheduler would have the pods bound.
func TestAPlaceholderOfAnotherSchedulerEndsTheTurn(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	p.cluster.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: p.shown()[1]}].Content["spec"].(map[string]any)["schedulerName"] = "default-scheduler"
	p.lookAt(t, "w")
	if got := p.shown(); len(got) > 0 {
		t.Errorf("%v are still shown", got)
	}
	p.wantRequest(t, event.RequestFailed, "has another scheduler")
}

// Placeholder pods have no labels that affinity between pods could select: with it an
// autoscaler would find no node for them.
func TestPlaceholdersKeepAffinityToNodesOnly(t *testing.T) {
	t.Parallel()
	nodes := map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{}}
	got := placeholderSpec(map[string]any{"affinity": map[string]any{"nodeAffinity": nodes, "podAffinity": map[string]any{}, "podAntiAffinity": map[string]any{}}})["affinity"]
	if affinity, _ := got.(map[string]any); len(affinity) != 1 || affinity["nodeAffinity"] == nil {
		t.Errorf("the affinity is %v, want that to nodes alone", got)
	}
	if got, has := placeholderSpec(map[string]any{"affinity": map[string]any{"podAntiAffinity": map[string]any{}}})["affinity"]; has {
		t.Errorf("the affinity is %v, want none", got)
	}
}
