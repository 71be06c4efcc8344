package state

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/index"
	"muster.dev/muster/pkg/spec/workload"
)

// objects finds live workloads by what they create in Kubernetes, which is of one
// workload at a time. Objects that users made with kubectl in two clusters are two; what Muster
// creates may be in any cluster, so its name is taken in all.
type objects map[namespacedKind]map[string]*index.Index[string, entry] // by home, and by name

// namespacedKind is a kind of objects in a namespace: few, where names are many.
type namespacedKind struct{ namespace, kind string }

// taken returns the workload that has the name of this one where this one may be; nil for none.
func (o objects) taken(w *workload.Workload) *entry {
	homes := o[namespacedKind{w.Namespace, w.Kind}]
	among := []string{"", w.MadeIn()}
	if w.MadeIn() == "" {
		among = slices.Sorted(maps.Keys(homes))
	}
	for _, home := range among {
		if sameKind := homes[home]; sameKind != nil && sameKind.Get(w.Name) != nil {
			return sameKind.Get(w.Name)
		}
	}
	return nil
}

func (o objects) add(e *entry) {
	of, home := namespacedKind{e.Namespace, e.Kind}, e.MadeIn()
	if o[of] == nil {
		o[of] = map[string]*index.Index[string, entry]{}
	}
	if o[of][home] == nil {
		o[of][home] = index.New(0, func(e *entry) string { return e.Name })
	}
	o[of][home].Put(e)
}

// remove forgets a workload's object, unless it is another workload's by now.
func (o objects) remove(e *entry) {
	of, home := namespacedKind{e.Namespace, e.Kind}, e.MadeIn()
	sameKind := o[of][home]
	if sameKind == nil || !sameKind.Has(e) {
		return
	}
	sameKind.Delete(e.Name)
	if sameKind.Len() > 0 {
		return
	}
	delete(o[of], home)
	if len(o[of]) == 0 {
		delete(o, of)
	}
}
