package recorder

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The labels on a gang's pods, as documented in docs/architecture.md.
const (
	workloadLabel = "muster.dev/workload"
	attemptLabel  = "muster.dev/attempt"
	podSetLabel   = "muster.dev/pod-set"
	submitter     = "submitter" // the pod set that is not waited for
	hostname      = "kubernetes.io/hostname"
)

func podOf(p *corev1.Pod) *pod {
	seen := &pod{
		name: p.Namespace + "/" + p.Name, node: p.Spec.NodeName, pinned: p.Spec.NodeSelector[hostname], set: p.Labels[podSetLabel],
		requests: requestsOf(p), deleting: p.DeletionTimestamp != nil, running: p.Status.Phase == corev1.PodRunning,
		ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	if id := p.Labels[workloadLabel]; id != "" {
		seen.gang = id + "/" + p.Labels[attemptLabel]
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			seen.homeless = seen.node == ""
		}
	}
	return seen
}

// allPods replaces what is known of pods by a list. Nothing is checked before all of it
// is charged: places change hands between two lists.
func (r *Recorder) allPods(items []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	here, before := map[string]*pod{}, r.pods
	clear(r.used)
	for _, item := range items {
		p := podOf(item.(*corev1.Pod))
		here[p.name] = p
		r.charge(p, 1)
	}
	r.pods = here
	for name, p := range before {
		if here[name] == nil {
			spend(r.spent, p)
			r.forget(p)
		}
	}
	for _, item := range items {
		object := item.(*corev1.Pod)
		p := here[podOf(object).name]
		r.clock(before[p.name], p)
		if old := before[p.name]; p.node != "" && (old == nil || old.node != p.node) {
			r.bound(p, object)
		}
		r.changed(p)
	}
}

func (r *Recorder) pod(kind watch.EventType, object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Events++
	seen := podOf(object.(*corev1.Pod))
	if kind == watch.Deleted {
		if known := r.pods[seen.name]; known != nil {
			r.drop(known)
		}
		return
	}
	r.set(seen, object.(*corev1.Pod))
}

// set takes a pod in as it is now and checks what it touches.
func (r *Recorder) set(p *pod, object *corev1.Pod) {
	old := r.pods[p.name]
	if old != nil {
		r.charge(old, -1)
	}
	r.pods[p.name] = p
	r.charge(p, 1)
	r.clock(old, p)
	if p.node != "" && (old == nil || old.node != p.node) {
		r.bound(p, object)
	}
	r.changed(p)
}

// bound checks a pod that has just got its node.
func (r *Recorder) bound(p *pod, object *corev1.Pod) {
	r.checkNode(p.node)
	if p.gang == "" {
		return
	}
	if p.pinned != p.node {
		r.violate("pod %s of gang %s is on node %s, but was sent to %q", p.name, p.gang, p.node, p.pinned)
	}
	r.seen.Bindings = append(r.seen.Bindings, Binding{
		object.Labels[workloadLabel], object.Labels[attemptLabel], p.set, p.node,
	})
}

// clock notes since when a pod has been on its node, and what it has used when it ends.
func (r *Recorder) clock(old, p *pod) {
	switch {
	case old != nil && old.holds() && p.holds():
		p.held = old.held
	case p.holds():
		p.held = time.Now()
	case old != nil && old.holds():
		spend(r.spent, old)
	}
}

// spend adds what a pod has used until now.
func spend(used map[string]map[corev1.ResourceName]float64, p *pod) {
	id, _, _ := strings.Cut(p.gang, "/")
	if id == "" || !p.holds() || p.held.IsZero() {
		return
	}
	if used[id] == nil {
		used[id] = map[corev1.ResourceName]float64{}
	}
	for name, milli := range p.requests {
		used[id][name] += float64(milli) / 1000 * time.Since(p.held).Seconds()
	}
}

func (r *Recorder) drop(p *pod) {
	spend(r.spent, p)
	r.charge(p, -1)
	delete(r.pods, p.name)
	r.forget(p)
}

// forget takes a pod that is gone out of its gang.
func (r *Recorder) forget(p *pod) {
	g := r.gangs[p.gang]
	if g == nil {
		return
	}
	delete(g.pods, p.name)
	r.checkGang(g)
	if len(g.pods) == 0 {
		delete(r.gangs, p.gang)
	}
}

func (r *Recorder) charge(p *pod, sign int64) {
	if p.node == "" || p.ended {
		return
	}
	if r.used[p.node] == nil {
		r.used[p.node] = amounts{}
	}
	r.used[p.node].add(p.requests, sign)
}

func (r *Recorder) checkNode(name string) {
	allocatable, known := r.nodes[name]
	if !known {
		return // it comes, or has just gone
	}
	for resource, amount := range r.used[name] {
		if amount > allocatable[resource] {
			r.violate("node %s is over-committed: %d of %d thousandths of %s", name, amount, allocatable[resource], resource)
		}
	}
}

// changed follows the gang of a pod.
func (r *Recorder) changed(p *pod) {
	if p.gang == "" || p.set == submitter {
		return
	}
	g := r.gangs[p.gang]
	if g == nil {
		g = &gang{pods: map[string]*pod{}}
		r.gangs[p.gang] = g
	}
	g.pods[p.name] = p
	r.checkGang(g)
}

// checkGang notes when a gang begins or ends to have pods that run beside others
// that cannot be placed.
func (r *Recorder) checkGang(g *gang) {
	running, homeless, all := 0, 0, 0
	for _, p := range g.pods {
		switch {
		case p.deleting || p.ended:
			continue
		case p.running:
			running++
		case p.homeless:
			homeless++
		}
		all++
	}
	partial := running > 0 && homeless > 0
	switch {
	case partial && g.since.IsZero():
		g.since = time.Now()
	case !partial && !g.since.IsZero():
		r.episodes(&r.seen, g).add(time.Since(g.since))
		g.since = time.Time{}
	}
	if !g.whole && running > 0 && running == all {
		g.whole = true
		r.seen.Gangs++
	}
}
