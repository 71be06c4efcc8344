package reconcile

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

var (
	errDenied  = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "x", errors.New("no right"))
	errInvalid = apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", nil)
	errSilent  = errors.New("connection refused")
)

// wrapped starts an AppWrapper of the Things with these names.
func wrapped(t *testing.T, names ...string) event.GangCommand {
	t.Helper()
	return wrappedMaking(t, "", names...)
}

// wrappedMaking is wrapped, of which one Thing makes pods.
func wrappedMaking(t *testing.T, makes string, names ...string) event.GangCommand {
	t.Helper()
	b := bundle.Bundle{}
	for _, name := range names {
		b.Items = append(b.Items, bundle.Item{MakesPods: name == makes, Object: json.RawMessage(`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "` + name + `"}}`)})
	}
	manifest, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return event.GangCommand{
		Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Order: 1, State: event.Present, Kind: workload.KindAppWrapper, Namespace: "n", Name: "w", Manifest: manifest,
		ObjectPolicy: workload.ObjectPolicy{Kinds: []string{workload.AllKinds}},
	}
}

// TestPlacesAreGivenBack: nothing that fails half-way keeps places longer than
// removeWithin, unless pods run or the API server does not answer.
func TestPlacesAreGivenBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string]error
		left    kubernetes.Left
		leftErr error
		atOnce  bool // refused at the first looks
		never   bool // not refused after the bound either
		behind  bool // the message names what stays
		gone    []string
	}{
		"unseen": {
			answers: map[string]error{"create b": errInvalid, "get b": errDenied}, atOnce: true, gone: []string{"a"},
		},
		"created and unseen": {
			answers: map[string]error{"create c": errInvalid, "get a": errDenied, "get b": errDenied}, atOnce: true, gone: []string{"b", "a"},
		},
		"not to be deleted": {
			answers: map[string]error{"create c": errInvalid, "delete b": errDenied}, behind: true, gone: []string{"a"},
		},
		"not to be deleted, pods gated": {
			answers: map[string]error{"create c": errInvalid, "delete a": errDenied}, left: kubernetes.Left{Pods: 2, Gated: 2, Clusters: 1}, behind: true, gone: []string{"b"},
		},
		"pods run": {
			answers: map[string]error{"create c": errInvalid, "delete a": errDenied}, left: kubernetes.Left{Pods: 2, Gated: 1}, never: true,
		},
		"silence": {
			answers: map[string]error{"create c": errInvalid, "delete a": errSilent}, leftErr: errSilent, never: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.answers, p.cluster.left, p.cluster.leftErr = c.answers, c.left, c.leftErr
			command := wrapped(t, "a", "b", "c")
			p.Command(&command)
			_ = p.see(t, 4)
			if p.status.Refused != c.atOnce {
				t.Errorf("refused at once: %v, want %v; %+v", p.status.Refused, c.atOnce, p.status)
			}
			p.clock = p.clock.Add(removeWithin + 1)
			_ = p.see(t, 4)
			if p.status.Refused == c.never {
				t.Errorf("refused after the bound: %v, want %v; %+v", p.status.Refused, !c.never, p.status)
			}
			if behind := strings.Contains(p.status.Message, "could not be removed"); behind != c.behind {
				t.Errorf("%q: names what stays: %v, want %v", p.status.Message, behind, c.behind)
			}
			for _, name := range c.gone {
				if !slices.Contains(p.cluster.deleted, name) {
					t.Errorf("deleted are %v, not %s", p.cluster.deleted, name)
				}
			}
		})
	}
}

// TestCreatedIsRemembered: a dispatcher deletes what an earlier one created by its
// UID, also when it may not read it, and nothing that has the same name.
func TestCreatedIsRemembered(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.cluster.answers = map[string]error{"create c": errInvalid, "get a": errDenied, "get b": errDenied, "delete a": errSilent, "delete b": errSilent}
	command := wrapped(t, "a", "b", "c")
	p.Command(&command)
	_ = p.see(t, 2)
	next := play(t, p.status)
	next.cluster.items = p.cluster.items
	next.cluster.answers = map[string]error{"get a": errDenied, "get b": errDenied}
	for id, item := range next.cluster.items {
		if id.Name == "b" {
			item.UID = "of another owner"
		}
	}
	command.State, command.Order = event.Absent, 2
	next.Command(&command)
	if err := next.see(t, 3); err != nil {
		t.Fatal(err)
	}
	if !next.status.Released || !slices.Equal(next.cluster.deleted, []string{"a"}) {
		t.Errorf("deleted %v, status %+v; want a deleted and the places given back", next.cluster.deleted, next.status)
	}
}

// TestRemovalIsBounded: a single object that cannot be removed keeps no places once
// no pod runs.
func TestRemovalIsBounded(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]kubernetes.Left{"clusters": {Clusters: 1}, "gated": {Pods: 1, Gated: 1}, "runs": {Pods: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.objects["r"] = &kubernetes.Object{Kind: "RayCluster", Namespace: "n", Name: "r", UID: "u", Workload: "w", Attempt: 1, Deleting: true}
			p.cluster.left = left
			p.Command(&event.GangCommand{Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, State: event.Absent, Kind: "RayCluster", Namespace: "n", Name: "r"})
			_ = p.see(t, 2)
			if p.status.Released {
				t.Fatalf("released while the object is being deleted: %+v", p.status)
			}
			p.clock = p.clock.Add(removeWithin + 1)
			_ = p.see(t, 1)
			if runs := left.Pods > left.Gated; p.status.Released == runs {
				t.Errorf("after the bound: %+v with %+v left", p.status, left)
			}
		})
	}
}

// TestAStuckDeletionIsNamed: the status names the object and the finalizers that a removal
// waits for, and what it leaves behind. The bound counts from the deletion, also when the
// dispatcher has just begun.
func TestAStuckDeletionIsNamed(t *testing.T) {
	t.Parallel()
	const want = "RayCluster n/r, which has finalizer example.com/stuck"
	for name, c := range map[string]struct {
		deletedFor, after time.Duration
		left              string
		released          bool
	}{
		"at once":                   {left: ""},
		"after some seconds":        {after: namedAfter + 1, left: want},
		"after the bound":           {after: removeWithin + 1, left: want, released: true},
		"deleted before a restart":  {deletedFor: namedAfter + 1, left: want},
		"deleted long before it":    {deletedFor: removeWithin + 1, left: want, released: true},
		"deleted shortly before it": {deletedFor: namedAfter - 1, left: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.objects["r"] = &kubernetes.Object{
				Kind: "RayCluster", Namespace: "n", Name: "r", UID: "u", Workload: "w", Attempt: 1,
				Deleting: true, DeletedAt: p.clock.Add(-c.deletedFor), Finalizers: []string{"example.com/stuck"},
			}
			p.cluster.left = kubernetes.Left{Clusters: 1}
			p.Command(&event.GangCommand{Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, State: event.Absent, Kind: "RayCluster", Namespace: "n", Name: "r"})
			_ = p.see(t, 1)
			p.clock = p.clock.Add(c.after)
			_ = p.see(t, 1)
			if p.status.Left != c.left || p.status.Released != c.released {
				t.Errorf("left is %q, released %v; want %q, %v", p.status.Left, p.status.Released, c.left, c.released)
			}
			if c.released && !strings.Contains(p.status.Message, want) {
				t.Errorf("the message is %q, want %q in it", p.status.Message, want)
			}
			if !c.released && c.left != "" { // it goes after all
				delete(p.cluster.objects, "r")
				p.cluster.left = kubernetes.Left{}
				_ = p.see(t, 2)
				if p.status.Left != "" || !p.status.Released {
					t.Errorf("when it is gone: %+v", p.status)
				}
			}
		})
	}
}

// TestANameThatIsBeingFreed: a workload whose name an earlier object still has says what the
// deletion of that one waits for, while it waits and when it gives up.
func TestANameThatIsBeingFreed(t *testing.T) {
	t.Parallel()
	const want = "has finalizers a/b, c/d, e/f and 1 more"
	held := kubernetes.Object{Namespace: "n", Workload: "other", Attempt: 1, UID: "u", Deleting: true, Finalizers: []string{"a/b", "c/d", "e/f", "g/h"}}
	for name, command := range map[string]event.GangCommand{"a Ray object": rayCommand(1), "a wrapped object": wrapped(t, "b")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			ray, thing := held, held
			ray.Kind, ray.Name, thing.Kind, thing.Name = "RayCluster", "r", "Thing", "b"
			p.cluster.objects["r"], p.cluster.items[thingB] = &ray, &kubernetes.Wrapped{Object: thing}
			p.Command(&command)
			_ = p.see(t, 2)
			if p.status.Refused || !strings.Contains(p.status.Message, want) {
				t.Errorf("status %+v, want it to wait with %q", p.status, want)
			}
			p.clock = p.clock.Add(removeWithin + 1)
			_ = p.see(t, 2)
			if !p.status.Refused || !strings.Contains(p.status.Message, want) {
				t.Errorf("status %+v, want it refused with %q", p.status, want)
			}
		})
	}
}

// TestWhatIsLeftIsBounded: names of others fill no status.
func TestWhatIsLeftIsBounded(t *testing.T) {
	t.Parallel()
	object := kubernetes.Object{Kind: "RayCluster", Namespace: "n", Name: "r", Finalizers: []string{strings.Repeat("é", 5000)}}
	if text := stuck(slices.Repeat([]kubernetes.Object{object}, 5), errSilent); len(text) > leftBytes+4 {
		t.Errorf("what is left has %d bytes", len(text))
	}
}
