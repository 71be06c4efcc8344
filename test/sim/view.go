package sim

import (
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

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
		Epoch: o.epoch, Stamped: o.epoch > 0, Sizes: sizes, Keeps: sizes, EvictingAt: o.evictingAt,
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
		if v.of[key] != id || v.c.w.Bug == BugFreedEarly && v.pods[key].Deleting {
			continue
		}
		p := v.pods[key]
		if record, live := v.c.w.disk.record(id); v.c.w.Bug == BugUnawaited && live && p.Attempt < record.Attempt {
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

// WatchesRequests reports that no changes of requests come: they are looked at again and again.
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
