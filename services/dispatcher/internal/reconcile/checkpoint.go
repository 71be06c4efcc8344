package reconcile

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// A job reports that it has saved its work by an annotation of its object, or of one of its
// pods: that it can patch with the service account that it runs as.

// reporters returns the pods of the attempt that report a checkpoint.
func (p *pass) reporters() (pods []gang.Pod) {
	for _, pod := range p.cache.Pods(p.command.Workload) {
		if !pod.LastCheckpoint.IsZero() && pod.Namespace == p.command.Namespace && pod.Attempt == p.command.Attempt {
			pods = append(pods, pod)
		}
	}
	return pods
}

// savedByPods returns the last checkpoint that a pod of the attempt reports; zero without a
// report.
func (p *pass) savedByPods() (last time.Time) {
	for _, pod := range p.reporters() {
		last = laterOf(last, pod.LastCheckpoint)
	}
	return last
}

// savedByPods returns, for each item of which a pod reports a checkpoint, the last of these.
func (w *wrappedObjects) savedByPods(p *pass) map[*wrappedItem]time.Time {
	last := map[*wrappedItem]time.Time{}
	for _, pod := range p.reporters() {
		if maker := w.makerOf(pod.PodSet); maker != nil {
			last[maker] = laterOf(last[maker], pod.LastCheckpoint)
		}
	}
	return last
}

// makerOf returns the item whose pods the pod set has; nil for none. The pod sets of a Ray
// object begin with its prefix, and those of other objects are named by their templates.
func (w *wrappedObjects) makerOf(podSet string) (maker *wrappedItem) {
	for _, one := range w.items {
		if slices.ContainsFunc(one.item.Templates, func(t bundle.Template) bool { return t.PodSet == podSet }) {
			return one
		}
		prefix := one.item.PodSetPrefix
		if bundle.IsRay(one.id) && strings.HasPrefix(podSet, prefix) && (maker == nil || len(prefix) > len(maker.item.PodSetPrefix)) {
			maker = one
		}
	}
	return maker
}

// laterOf is the later of two times.
func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
