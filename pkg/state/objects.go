package state

import "muster.dev/muster/pkg/decide/index"

// objects finds live workloads by what they create in Kubernetes, which is of one
// workload at a time.
type objects map[kindIn]*index.Index[string, entry] // by name

// kindIn is a kind of objects in a namespace: few, where names are many.
type kindIn struct{ namespace, kind string }

func (o objects) get(namespace, kind, name string) *entry {
	if alike := o[kindIn{namespace, kind}]; alike != nil {
		return alike.Get(name)
	}
	return nil
}

func (o objects) add(e *entry) {
	like := kindIn{e.Namespace, e.Kind}
	if o[like] == nil {
		o[like] = index.New(0, func(e *entry) string { return e.Name })
	}
	o[like].Put(e)
}

// remove forgets a workload's object, unless it is another workload's by now.
func (o objects) remove(e *entry) {
	like := kindIn{e.Namespace, e.Kind}
	alike := o[like]
	if alike == nil || !alike.Has(e) {
		return
	}
	alike.Delete(e.Name)
	if alike.Len() == 0 {
		delete(o, like)
	}
}
