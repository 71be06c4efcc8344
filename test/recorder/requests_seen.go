package recorder

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func each(items []any, one func(watch.EventType, any)) {
	for _, item := range items {
		one(watch.Modified, item)
	}
}

func (r *Requests) allRequests(items []any) {
	r.mu.Lock()
	here := map[string]bool{}
	for _, item := range items {
		here[string(item.(*unstructured.Unstructured).GetUID())] = true
	}
	for uid, q := range r.requests {
		q.gone = q.gone || !here[uid]
	}
	r.mu.Unlock()
	each(items, r.request)
}

func (r *Requests) request(kind watch.EventType, object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := object.(*unstructured.Unstructured)
	uid := string(u.GetUID())
	q := r.requests[uid]
	if q == nil {
		q = r.created(uid, u)
	}
	q.deleting = u.GetDeletionTimestamp() != nil
	q.provisioned = q.provisioned || isTrue(u, "Provisioned")
	q.failed = q.failed || isTrue(u, "Failed")
	q.gone = kind == watch.Deleted
}

// created checks a request that is new.
func (r *Requests) created(uid string, u *unstructured.Unstructured) *asked {
	q := &asked{name: u.GetName(), workload: u.GetLabels()[workloadLabel]}
	sets, _, _ := unstructured.NestedSlice(u.Object, "spec", "podSets")
	for _, set := range sets {
		count, _, _ := unstructured.NestedInt64(set.(map[string]any), "count")
		q.pods += count
	}
	switch g := r.gangs[q.workload]; {
	case g == nil:
		r.violate("request %s is of workload %q, which was never submitted", q.name, q.workload)
	case q.pods < 1 || q.pods > int64(g.lacking) || q.pods < int64(g.lacking) && !g.harmed:
		r.violate("request %s asks for %d pods of workload %s, which lacks places for %d", q.name, q.pods, q.workload, g.lacking)
	}
	if r.byName[q.name] != nil {
		r.violate("request %s was made twice", q.name)
	}
	for _, other := range r.requests {
		if other.workload == q.workload && !other.gone && !other.deleting {
			r.violate("request %s was made while request %s of the same workload is there", q.name, other.name)
		}
	}
	r.requests[uid], r.byName[q.name] = q, q
	return q
}

func isTrue(u *unstructured.Unstructured, condition string) bool {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(all, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == condition && fields["status"] == "True"
	})
}

// node notes for which request a node came. Nodes without the label came for no request: they
// replace a node that was taken away, or are kept at the least number of a pool.
func (r *Requests) node(kind watch.EventType, object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := object.(*corev1.Node)
	uid := n.Labels[nodeOfRequest]
	switch {
	case uid == "":
		return
	case kind == watch.Deleted:
		delete(r.nodes, n.Name)
	default:
		r.nodes[n.Name] = uid
	}
	if r.came[uid] == nil {
		r.came[uid] = map[string]bool{}
	}
	r.came[uid][string(n.UID)] = true
}

func (r *Requests) allPods(items []any) {
	r.mu.Lock()
	clear(r.pods)
	r.mu.Unlock()
	each(items, r.pod)
}

func (r *Requests) pod(kind watch.EventType, object any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := object.(*corev1.Pod)
	name := p.Name
	if kind == watch.Deleted || p.Labels[workloadLabel] == "" {
		delete(r.pods, name)
		return
	}
	r.pods[name] = &askersPod{
		workload: p.Labels[workloadLabel], attempt: p.Labels[attemptLabel], request: p.Annotations[consumedRequest],
		running: p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil,
	}
	r.gang(r.pods[name])
}

// gang notes that an attempt runs whole, and with which request.
func (r *Requests) gang(p *askersPod) {
	g := r.gangs[p.workload]
	if g == nil {
		r.violate("a pod of workload %s runs, and the workload was never submitted", p.workload)
		return
	}
	running, with := 0, map[string]bool{}
	for _, other := range r.pods {
		if other.workload == p.workload && other.attempt == p.attempt && other.running {
			running++
			with[other.request] = true
		}
	}
	if running < g.pods {
		return
	}
	g.whole[p.attempt] = true
	delete(with, "")
	maps.Copy(g.used, with)
}
