package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// api is the API server as the dispatcher uses it.
type api struct {
	c     *cluster
	held  *election
	turns *turns
}

// change has the server change something, if the machine holds its lease: that is
// asked at the last moment, as lease.Guard does.
func (a api) change(op string, effect func() error) error {
	if a.held != nil {
		if err := a.held.check(); err != nil {
			return err
		}
	}
	return a.call(op, effect)
}

func (a api) call(op string, effect func() error) error { return a.c.w.call(apiServer, op, effect) }

// Create implements dispatcher.Cluster.
func (a api) Create(_ context.Context, _, namespace string, manifest json.RawMessage) (uid string, err error) {
	err = a.change("Create", func() (err error) {
		uid, err = a.c.create(namespace, manifest)
		return err
	})
	if err != nil {
		return "", err
	}
	return uid, nil
}

// Get implements dispatcher.Cluster.
func (a api) Get(_ context.Context, _, namespace, name string) (found *dispatcher.Object, err error) {
	return found, a.call("Get", func() error {
		found = nil
		if o := a.c.objects[namespace+"/"+name]; o != nil {
			seen := a.c.seenObject(o)
			found = &seen
		}
		return nil
	})
}

// Delete implements dispatcher.Cluster.
func (a api) Delete(_ context.Context, o dispatcher.Object) error {
	return a.change("Delete", func() error {
		if key := o.Namespace + "/" + o.Name; a.c.objects[key] != nil && a.c.objects[key].uid == o.UID {
			a.c.deleteObject(key)
		}
		return nil
	})
}

// DeletePod implements dispatcher.Cluster.
func (a api) DeletePod(_ context.Context, seen dispatcher.Pod, force bool) error {
	return a.change("DeletePod", func() error {
		if p := a.c.pods[seen.Namespace+"/"+seen.Name]; p != nil && p.uid == seen.UID {
			a.c.deletePod(p, force)
		}
		if a.c.scaler != nil {
			a.c.scaler.hide(seen.UID)
		}
		return nil
	})
}

// Announce implements dispatcher.Cluster.
func (a api) Announce(_ context.Context, seen dispatcher.Object, at time.Time) error {
	return a.change("Announce", func() error {
		key := seen.Namespace + "/" + seen.Name
		if o := a.c.objects[key]; o != nil && o.uid == seen.UID {
			if o.evictingAt = ""; !at.IsZero() {
				o.evictingAt = at.UTC().Format(time.RFC3339)
			}
			a.c.changed("object " + key)
		}
		return nil
	})
}

// GiveUp implements dispatcher.Cluster.
func (a api) GiveUp(_ context.Context, seen dispatcher.Object, sizes map[string]int, pods map[string][]string) error {
	return a.change("GiveUp", func() error {
		key := seen.Namespace + "/" + seen.Name
		o := a.c.objects[key]
		if o == nil || o.uid != seen.UID {
			return nil
		}
		o.sets = slices.Clone(o.sets)
		for i := range o.sets {
			if size, given := sizes[o.sets[i].Name]; given {
				o.sets[i].Count = min(o.sets[i].Count, size)
			}
			for _, name := range pods[o.sets[i].Name] {
				if p := a.c.pods[seen.Namespace+"/"+name]; p != nil && p.owner == o.uid {
					a.c.deletePod(p, false)
				}
			}
		}
		a.c.w.check.resized(o)
		a.c.changed("object " + key)
		return nil
	})
}

// Remaining implements dispatcher.Cluster.
func (a api) Remaining(_ context.Context, id workload.ID, namespace string) (left dispatcher.Left, err error) {
	err = a.call("Remaining", func() error {
		if a.c.w.Bug == BugFreedEarly {
			return nil
		}
		left = dispatcher.Left{}
		for _, p := range a.c.podsOf(func(p *pod) bool { return p.label() == id && p.namespace == namespace }) {
			left.Pods++
			left.Earliest = earliest(left.Earliest, p.attempt)
			if p.gated {
				left.Gated++
			}
		}
		for _, o := range a.c.objects {
			if o.workload == id && o.namespace == namespace {
				left.Clusters++
				left.Earliest = earliest(left.Earliest, o.attempt)
			}
		}
		if a.c.w.Bug == BugUnawaited {
			left.Earliest = 0
		}
		return nil
	})
	return left, err
}

// Pin implements dispatcher.Cluster.
func (a api) Pin(_ context.Context, pin dispatcher.Pin) error {
	return a.change("Pin", func() error {
		key := pin.Pod.Namespace + "/" + pin.Pod.Name
		p := a.c.pods[key]
		if p == nil || p.uid != pin.Pod.UID {
			return nil
		}
		if p.claims != "" {
			a.c.w.breach("G1", "%s, which is forged, was sent to a node as if it were of %s", key, a.c.w.submits.nameOf(p.claims))
		}
		if !p.gated && p.hostname != pin.Hostname {
			return fmt.Errorf("pod %s is pinned to %s: field is immutable", key, p.hostname)
		}
		p.gated, p.hostname = false, pin.Hostname
		a.c.changed("pod " + key)
		a.c.w.after(a.c.w.latency(), func() { a.c.schedule(p) })
		return nil
	})
}

// Quotas implements dispatcher.Cluster.
func (a api) Quotas(_ context.Context, namespace string, like []dispatcher.Pod) (quotas []dispatcher.Quota, err error) {
	return quotas, a.call("Quotas", func() error {
		for _, p := range like {
			a.c.w.check.askedForRoom(p.Workload, p.Attempt)
		}
		quotas = a.c.quotas(namespace, like)
		if a.c.w.Bug == BugCramped {
			quotas = nil
		}
		return nil
	})
}

// ControllerOf implements dispatcher.Cluster: nothing stands between a pod and its object.
func (a api) ControllerOf(context.Context, string, dispatcher.Controller) (string, error) {
	return "", nil
}

// OrphanedPods implements dispatcher.Cluster.
func (a api) OrphanedPods(_ context.Context, id workload.ID, seen []dispatcher.Pod) (orphans []dispatcher.Pod, err error) {
	return orphans, a.call("OrphanedPods", func() error {
		orphans = nil
		for _, p := range a.c.podsOf(func(p *pod) bool { return p.label() == id && !p.deleting }) {
			meant := slices.ContainsFunc(seen, func(s dispatcher.Pod) bool { return s.UID == p.uid && s.Attempt == p.attempt })
			owner := a.c.objects[p.namespace+"/"+p.ownerName]
			if meant && (owner == nil || owner.uid != p.owner) {
				orphans = append(orphans, seenPod(p))
			}
		}
		return nil
	})
}

// errNoBundles: the played load has no wrapped objects.
var errNoBundles = fmt.Errorf("the played API server has no wrapped objects")

// Release implements dispatcher.Cluster.
func (a api) Release(context.Context, string, string, json.RawMessage) (bool, error) {
	return false, errNoBundles
}

// Allowed implements dispatcher.Cluster.
func (a api) Allowed(context.Context, workload.Identity, bundle.Identity) (string, error) {
	return "", errNoBundles
}

// Lacks implements dispatcher.Cluster.
func (a api) Lacks(context.Context, bundle.Identity) (string, error) { return "", errNoBundles }

func alreadyExists(name string) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, name)
}

// earliest is the earlier of two attempts; 0 is none.
func earliest(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
