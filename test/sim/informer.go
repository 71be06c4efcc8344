package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// informer is a machine's watch of the API server: news of one thing after the
// other, late, with only the last of each thing, or everything again.
type informer struct {
	c      *cluster
	m      *machine
	life   int
	listed bool
	// see takes in the present state of a thing; list is called after everything has
	// been listed.
	see  func(key string)
	list func(keys []string)
}

func (c *cluster) watch(m *machine, see func(string), list func([]string)) {
	i := &informer{c: c, m: m, life: m.life, see: see, list: list}
	c.informers = slices.DeleteFunc(c.informers, func(i *informer) bool { return i.life != i.m.life })
	c.informers = append(c.informers, i)
	i.relist()
}

func (i *informer) current() bool { return i.life == i.m.life && !i.m.dead }

// relist reads everything again.
func (i *informer) relist() {
	w := i.c.w
	w.after(w.latency(), func() {
		switch {
		case !i.current():
		case !w.reaches(i.m, apiServer):
			w.after(time.Second, i.relist)
		default:
			keys := i.c.keys()
			w.after(w.net.arrives(i.m.name+"<watch"), func() { i.whenAwake(func() { i.listed = true; i.list(keys) }) })
		}
	})
}

// keys names all there is.
func (c *cluster) keys() []string {
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		keys = append(keys, "node "+name)
	}
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		keys = append(keys, "object "+key)
	}
	for _, key := range slices.Sorted(maps.Keys(c.pods)) {
		keys = append(keys, "pod "+key)
	}
	return keys
}

func (i *informer) offer(key string) {
	w := i.c.w
	if !i.current() || !w.reaches(i.m, apiServer) {
		return // it lists when it is connected again
	}
	if w.nemesis.draw(i.m.name+" watches", Restarted) != "" {
		i.relist()
		return
	}
	if w.random.IntN(5) == 0 { // now and then a watch is late
		w.net.hold(i.m.name+"<watch", w.between(50*time.Millisecond, 2*time.Second))
	}
	w.after(w.net.arrives(i.m.name+"<watch"), func() {
		if i.listed {
			i.whenAwake(func() { i.see(key) })
		}
	})
}

func (i *informer) whenAwake(do func()) {
	if !i.current() {
		return
	}
	if rest := i.m.paused.Sub(i.c.w.now); rest > 0 {
		i.c.w.after(rest, func() { i.whenAwake(do) })
		return
	}
	do()
}

// view is the dispatcher's cache.
type view struct {
	c       *cluster
	objects map[string]dispatcher.Object
	pods    map[string]dispatcher.Pod
	of      map[string]workload.ID
	look    func(workload.ID)
}

func newView(c *cluster, look func(workload.ID)) *view {
	return &view{c: c, objects: map[string]dispatcher.Object{}, pods: map[string]dispatcher.Pod{}, of: map[string]workload.ID{}, look: look}
}

func (v *view) see(key string) {
	kind, name, _ := strings.Cut(key, " ")
	before := v.of[key]
	switch kind {
	case "object":
		delete(v.objects, key)
		if o := v.c.objects[name]; o != nil {
			v.objects[key], v.of[key] = v.c.seenObject(o), o.workload
		}
	case "pod":
		delete(v.pods, key)
		if p := v.c.pods[name]; p != nil && p.label() != "" {
			v.pods[key], v.of[key] = seenPod(p), p.label()
		}
	default:
		return
	}
	if id := v.of[key]; id != "" || before != "" {
		v.look(max(id, before))
	}
}

func (v *view) list(keys []string) {
	for _, key := range slices.Sorted(maps.Keys(v.of)) {
		v.see(key)
	}
	for _, key := range keys {
		v.see(key)
	}
}

func (c *cluster) seenObject(o *object) dispatcher.Object {
	sizes := map[string]int{}
	for _, set := range o.sets {
		if set.Role == workload.RoleWorker {
			sizes[set.Name] = set.Count
			switch {
			case c.w.Bug == BugLarger && o.size() > o.atStart:
				sizes[set.Name]++
			case c.w.Bug == BugSurplus:
				sizes[set.Name] += max(0, o.atStart-o.size())
			}
		}
	}
	return dispatcher.Object{
		Kind: workload.KindRayCluster, Namespace: o.namespace, Name: o.name, UID: o.uid, Workload: o.workload, Attempt: o.attempt,
		Stamped: o.stamped, Sizes: sizes, Keeps: sizes, EvictingAt: o.evictingAt,
	}
}

func seenPod(p *pod) dispatcher.Pod {
	return dispatcher.Pod{
		Namespace: p.namespace, Name: p.name, UID: p.uid, Cluster: clusterName, Workload: p.label(), Attempt: p.attempt, PodSet: p.set, Hostname: p.hostname, Node: p.node,
		Gated: p.gated, Deleting: p.deleting, GoneBy: p.goneBy,
		Controller: p.controller(),
	}
}

func (p *pod) controller() (c dispatcher.Controller) {
	if p.owner != "" {
		c = dispatcher.Controller{Kind: workload.KindRayCluster, Name: p.ownerName, UID: p.owner}
	}
	return c
}

// Object implements dispatcher.Cache.
func (v *view) Object(_, namespace, name string) *dispatcher.Object {
	if o, ok := v.objects["object "+namespace+"/"+name]; ok {
		return &o
	}
	return nil
}

// Pods implements dispatcher.Cache.
func (v *view) Pods(id workload.ID) (pods []dispatcher.Pod) {
	for _, key := range slices.Sorted(maps.Keys(v.pods)) {
		if v.of[key] != id || v.c.w.Bug == BugFreedBySaying && v.pods[key].Deleting {
			continue
		}
		p := v.pods[key]
		if record, live := v.c.w.disk.record(id); v.c.w.Bug == BugBeside && live && p.Attempt < record.Attempt {
			p.Attempt = 0
		}
		pods = append(pods, p)
	}
	return pods
}

// Objects implements dispatcher.Cache.
func (v *view) Objects() (all []dispatcher.Object) {
	for _, key := range slices.Sorted(maps.Keys(v.objects)) {
		all = append(all, v.objects[key])
	}
	return all
}

// RayClusters implements dispatcher.Cache: there are no other objects.
func (v *view) RayClusters(objects []string) []string { return objects }

// Made implements dispatcher.Cache: no played pod loses its labels.
func (v *view) Made([]string) []dispatcher.Pod { return nil }

// PodsIn implements dispatcher.Cache: no pod there has lost its labels.
func (v *view) PodsIn(string) (ours, others []dispatcher.Pod) { return nil, nil }

// Workloads implements dispatcher.Cache.
func (v *view) Workloads() (ids []workload.ID) {
	has := map[workload.ID]bool{}
	for key := range v.pods {
		has[v.of[key]] = true
	}
	return slices.Sorted(maps.Keys(has))
}

// WatchesRequests says that no changes of requests come: the world has no autoscaler.
func (v *view) WatchesRequests() bool { return false }

// Clusters implements dispatcher.Cache.
func (v *view) Clusters(id workload.ID) (all []dispatcher.Object) {
	for _, o := range v.Objects() {
		if o.Workload == id {
			all = append(all, o)
		}
	}
	return all
}

func alreadyExists(name string) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, name)
}

// api is the API server as the dispatcher uses it.
type api struct {
	c    *cluster
	held *held
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
		if a.c.w.Bug == BugFreedBySaying {
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
		if a.c.w.Bug == BugBeside {
			left.Earliest = 0
		}
		return nil
	})
	return left, err
}

// earliest is the earlier of two attempts; 0 is none.
func earliest(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
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

// CreateItem implements dispatcher.Cluster.
func (a api) CreateItem(context.Context, bundle.Identity, json.RawMessage) (string, error) {
	return "", errNoBundles
}

// GetItem implements dispatcher.Cluster.
func (a api) GetItem(context.Context, bundle.Identity) (*dispatcher.Wrapped, error) {
	return nil, errNoBundles
}

// DeleteItem implements dispatcher.Cluster.
func (a api) DeleteItem(context.Context, bundle.Identity, string) (bool, error) {
	return false, errNoBundles
}

// Labelled implements dispatcher.Cluster: no nodes are asked for here.
func (a api) Labelled(context.Context, string, string, string, workload.ID) ([]dispatcher.Wrapped, error) {
	return nil, nil
}

// Allowed implements dispatcher.Cluster.
func (a api) Allowed(context.Context, workload.Identity, bundle.Identity) (string, error) {
	return "", errNoBundles
}

// Lacks implements dispatcher.Cluster.
func (a api) Lacks(context.Context, bundle.Identity) (string, error) { return "", errNoBundles }
