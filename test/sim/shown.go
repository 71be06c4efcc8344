package sim

import (
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// In a shown seed an autoscaler sees pending pods only, and gangs show themselves by placeholder
// pods, one at a time.

// firstShown is the first seed that may be shown.
const firstShown = 7000

// shown reports that gangs show themselves in this seed: so it is in every fourth.
func (w *World) shown() bool { return w.scaled() && w.Seed >= firstShown && w.Seed%4 == 0 }

const (
	placeholderKind = "Pod"
	// outOfStock is for how long an autoscaler that plays it has no nodes.
	outOfStock = 90 * time.Second
)

// OutOfStock is a fault of an autoscaler that sees pods only.
const OutOfStock Fault = "there are no nodes for pods that are pending"

// placeholders are the placeholder pods that are there.
func (a *autoscaler) placeholders() (all []*item) {
	for _, key := range sortedKeys(a.items) {
		if a.items[key].id.Kind == placeholderKind {
			all = append(all, a.items[key])
		}
	}
	return all
}

func (a *autoscaler) placeholdersOf(namespace string, of workload.ID) (found []dispatcher.Placeholder) {
	for _, it := range a.placeholders() {
		if (of == "" || it.workload == of) && (namespace == "" || it.id.Namespace == namespace) {
			found = append(found, dispatcher.Placeholder{
				Namespace: it.id.Namespace, Name: it.id.Name, UID: it.uid, Workload: it.workload, Request: it.request, Shown: it.shown,
			})
		}
	}
	return found
}

// placed takes a placeholder pod in.
func (a *autoscaler) placed(it *item, labels, annotations map[string]string) {
	w := a.c.w
	it.workload, it.request = workload.ID(labels[kube.PlaceholderLabel]), annotations["muster.dev/provisioning-request"]
	w.check.made[madeAsked]++
	pods := 0
	for _, other := range a.placeholders() {
		if other.workload != it.workload {
			w.breach("G4", "%s shows itself while %s does", w.submits.nameOf(it.workload), w.submits.nameOf(other.workload))
		}
		pods++
	}
	switch each := w.submits.by[it.workload]; {
	case each == nil && !w.submits.hostile[it.workload]:
		w.breach("G3", "pod %s is of %s, which was never submitted", it.id.Name, w.submits.nameOf(it.workload))
	case each != nil && pods > each.pods:
		w.breach("G1", "%s shows %d pods, and has %d", w.submits.nameOf(it.workload), pods, each.pods)
	}
}

// show marks a placeholder pod as pending.
func (a *autoscaler) show(seen dispatcher.Placeholder) {
	for _, it := range a.placeholders() {
		if it.uid == seen.UID {
			it.shown, a.ready[it.request] = true, true
		}
	}
}

// hide deletes a placeholder pod.
func (a *autoscaler) hide(uid string) {
	for _, it := range a.placeholders() {
		if it.uid == uid {
			a.remove(it)
		}
	}
}

// serve adds nodes for pods that are pending and have no place on idle nodes: some at a time,
// later, or none for a while.
func (a *autoscaler) serve() {
	w := a.c.w
	w.after(2*time.Second, a.serve)
	lacking := 0
	for _, it := range a.placeholders() {
		if it.shown {
			lacking++
		}
	}
	lacking -= a.idleNodes()
	if lacking <= 0 || w.now.Before(a.noStock) {
		return
	}
	faulty := w.now.Sub(w.start) <= faultsFor
	switch draw := a.random.IntN(8); {
	case faulty && draw == 0:
		a.noStock = w.now.Add(outOfStock)
		w.nemesis.note(OutOfStock, fmt.Sprintf("%d pods", lacking))
		return
	case faulty && draw == 1 && lacking > 1:
		w.nemesis.note(NodesPartial, fmt.Sprintf("for %d pods", lacking))
		lacking--
	case faulty && draw < 5:
		return // it is slow
	}
	for range lacking {
		a.nodes++
		a.c.addNode(fmt.Sprintf("scaled-%03d", a.nodes))
	}
	a.c.w.check.made[madeProvisioned]++
}

// idleNodes counts the nodes on which nothing is.
func (a *autoscaler) idleNodes() int {
	used := map[string]bool{}
	for _, p := range a.c.pods {
		used[p.node] = true
	}
	idle := 0
	for name := range a.c.nodes {
		if strings.HasPrefix(name, "scaled-") && !used[name] {
			idle++
		}
	}
	return idle
}
