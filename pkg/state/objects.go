package state

import "muster.dev/muster/pkg/decide/index"

// objects finds live workloads by what they create in Kubernetes, which is of one
// workload at a time.
type objects map[namespacedKind]*index.Index[string, entry] // by name

// namespacedKind is a kind of objects in a namespace: few, where names are many.
type namespacedKind struct{ namespace, kind string }

func (o objects) get(namespace, kind, name string) *entry {
	if sameKind := o[namespacedKind{namespace, kind}]; sameKind != nil {
		return sameKind.Get(name)
	}
	return nil
}

func (o objects) add(e *entry) {
	of := namespacedKind{e.Namespace, e.Kind}
	if o[of] == nil {
		o[of] = index.New(0, func(e *entry) string { return e.Name })
	}
	o[of].Put(e)
}

// remove forgets a workload's object, unless it is another workload's by now.
func (o objects) remove(e *entry) {
	of := namespacedKind{e.Namespace, e.Kind}
	sameKind := o[of]
	if sameKind == nil || !sameKind.Has(e) {
		return
	}
	sameKind.Delete(e.Name)
	if sameKind.Len() == 0 {
		delete(o, of)
	}
}
