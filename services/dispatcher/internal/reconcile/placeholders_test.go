package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

func showCommand(id workload.ID, order int64) *event.GangCommand {
	c := provisionCommand(order)
	c.Workload = id
	c.Provision.Class, c.Provision.Name = workload.PlaceholderClass, fmt.Sprintf("raycluster-%s-0f0f0-nodes-1", id)
	return c
}

// shown are the names of the placeholder pods that an autoscaler sees as pending.
func (p *played) shown() (names []string) {
	pods, _ := p.cluster.Placeholders(context.Background(), "", "")
	for _, pod := range pods {
		if pod.Shown {
			names = append(names, pod.Name)
		}
	}
	return names
}

func (p *played) lookAt(t *testing.T, id workload.ID) {
	t.Helper()
	if _, err := p.look(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// A gang shows itself as pods that nothing binds, runs or takes for its own.
func TestAGangShowsItselfAsPods(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprintf("ppt-raycluster-w-0f0f0-nodes-1-workers-%d", i))
	}
	if got := p.shown(); !slices.Equal(got, want) {
		t.Fatalf("shown are %v, want %v; created %v", got, want, p.cluster.created)
	}
	if got := p.status.Provision; got.State != event.RequestProvisioned || !got.Created {
		t.Errorf("the status is %+v, want that places may be looked for", got)
	}
	content := p.cluster.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: want[0]}].Content
	_, labels := metadataOf(content)
	if len(labels) != 2 || labels[kube.PlaceholderLabel] != "w" || labels[kube.PlaceholderClusterLabel] != "c" {
		t.Errorf("a pod has the labels %v: a controller could take it for its own", labels)
	}
	spec := content["spec"].(map[string]any)
	if spec["schedulerName"] != "muster.dev/placeholder" || spec["schedulingGates"] != nil {
		t.Errorf("a pod has scheduler %v and gates %v", spec["schedulerName"], spec["schedulingGates"])
	}
	container := spec["containers"].([]any)[0].(map[string]any)
	if container["image"] != placeholderImage || container["command"] != nil || container["env"] != nil {
		t.Errorf("a pod could run %v", container)
	}
	if got := fmt.Sprint(container["resources"].(map[string]any)["requests"]); got != "map[cpu:1 nvidia.com/gpu:1]" {
		t.Errorf("a pod requests %s", got)
	}
	created := len(p.cluster.created)
	p.lookAt(t, "w")
	if len(p.cluster.created) != created {
		t.Errorf("a second look created %v", p.cluster.created[created:])
	}
}

// One gang at a time: the next one waits until the pods of the one before are gone.
func TestOneGangShowsItselfAtATime(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	p.Command(showCommand("next", 2))
	p.lookAt(t, "next")
	if got := p.shown(); len(got) != 3 || !strings.Contains(got[0], "-w-") {
		t.Fatalf("shown are %v, want those of w alone", got)
	}
	if got := p.status.Provision; got.State != event.RequestPending || got.Created || !strings.Contains(got.Message, "another gang") {
		t.Errorf("the status is %+v", got)
	}
	gone := showCommand("w", 3)
	gone.State = event.Forgotten
	p.Command(gone)
	p.lookAt(t, "w")
	p.lookAt(t, "next")
	if got := p.shown(); len(got) != 3 || !strings.Contains(got[0], "-next-") {
		t.Errorf("shown are %v, want those of next", got)
	}
}

// A pod that a tenant labels as one of ours keeps no gang from showing itself, and is removed.
func TestForgedPlaceholdersHoldNothingUp(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	forged := p.cluster.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: p.shown()[0]}]
	gone := showCommand("w", 2)
	gone.State = event.Forgotten
	p.Command(gone)
	p.lookAt(t, "w")
	forged.Content["metadata"].(map[string]any)["labels"].(map[string]any)[kube.PlaceholderLabel] = "unknown"
	p.cluster.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "forged"}] = forged
	p.Command(showCommand("next", 3))
	p.lookAt(t, "next")
	if got := p.shown(); len(got) != 4 {
		t.Fatalf("shown are %v, want three of next beside the forged one", got)
	}
	p.Sweep(t.Context(), func(context.Context, workload.ID) (*workload.Record, error) { return nil, nil })
	if got := p.shown(); len(got) != 3 || slices.Contains(got, "forged") {
		t.Errorf("after the sweep %v are shown", got)
	}
}

// The pods are gone before the gang's object is created, and its pods name no request, which
// an autoscaler would look for.
func TestPlaceholdersGoBeforeTheGangComes(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	present := showCommand("w", 2)
	present.State, present.PodSets = event.Present, []workload.PodSet{{Name: "head", Count: 1}, {Name: "workers", Count: 3}}
	p.Command(present)
	left := -1
	p.cluster.write = func() {
		if p.cluster.objects["r"] != nil && left < 0 {
			left = len(p.shown())
		}
	}
	p.lookAt(t, "w")
	if p.cluster.objects["r"] == nil || left != 0 {
		t.Errorf("when the object %+v was created %d placeholders were left, want 0", p.cluster.objects["r"], left)
	}
}

// A scheduler that serves the name of no scheduler, or a webhook that changes it, would have the
// pods run: all are taken back, and the reason says why.
func TestAPlaceholderThatIsBoundEndsTheTurn(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.Command(showCommand("w", 1))
	p.lookAt(t, "w")
	p.cluster.items[bundle.Identity{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: p.shown()[1]}].Content["node"] = "a"
	p.lookAt(t, "w")
	if got := p.shown(); len(got) > 0 {
		t.Errorf("%v are still shown", got)
	}
	p.wantRequest(t, event.RequestFailed, "was bound to node a")
}

// A gang is shown whole or not at all: while one of its pods cannot be created, none is pending.
func TestAGangIsShownWhole(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.cluster.answers["create ppt-raycluster-w-0f0f0-nodes-1-workers-2"] = errors.New("the server is away")
	p.Command(showCommand("w", 1))
	if _, err := p.look(t.Context(), "w"); err == nil {
		t.Fatal("the failure is not tried again")
	}
	if got := p.shown(); len(got) > 0 {
		t.Errorf("shown are %v: an autoscaler adds nodes for a part of the gang", got)
	}
	delete(p.cluster.answers, "create ppt-raycluster-w-0f0f0-nodes-1-workers-2")
	p.lookAt(t, "w")
	if got := p.shown(); len(got) != 3 {
		t.Errorf("shown are %v, want three", got)
	}
}

// A gang whose command the stream has lost shows itself no more according to queue-manager: its
// pods go before the next gang is shown.
func TestPodsOfALostCommandGoBeforeTheNextGangIsShown(t *testing.T) {
	t.Parallel()
	before := play(t)
	before.Command(showCommand("w", 1))
	before.lookAt(t, "w")
	p := playOn(t, before.cluster) // it knows of no command
	p.SetTruth(func(context.Context, workload.ID) (*workload.Record, error) { return nil, nil })
	p.Command(showCommand("next", 2))
	p.lookAt(t, "next")
	if got := p.shown(); len(got) != 3 || !strings.Contains(got[0], "-next-") {
		t.Errorf("shown are %v, want those of next alone", got)
	}
}

// The command of a gang may be lost while queue-manager still has it show itself: the next one waits
// until that has ended.
func TestAGangWhoseCommandIsLostIsNotShownBesideAnother(t *testing.T) {
	t.Parallel()
	before := play(t)
	before.Command(showCommand("w", 1))
	before.lookAt(t, "w")
	p := playOn(t, before.cluster) // it knows of no command
	record := &workload.Record{Workload: workload.Workload{ID: "w", Namespace: "n"}, Phase: workload.Queued, Provisioning: &workload.Provisioning{
		Open: true, Class: workload.PlaceholderClass, Name: showCommand("w", 1).Provision.Name,
	}}
	p.SetTruth(func(context.Context, workload.ID) (*workload.Record, error) { return record, nil })
	p.Command(showCommand("next", 2))
	p.lookAt(t, "next")
	if got := p.shown(); len(got) != 3 || !strings.Contains(got[0], "-w-") {
		t.Fatalf("shown are %v, want those of w alone", got)
	}
	record = nil
	p.lookAt(t, "next")
	if got := p.shown(); len(got) != 3 || !strings.Contains(got[0], "-next-") {
		t.Errorf("shown are %v, want those of next alone", got)
	}
}
