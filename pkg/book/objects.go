package book

// objects finds live workloads by what they create in Kubernetes, which is of one
// workload at a time.
type objects map[kindIn]map[string]*entry // by name

// kindIn is a kind of objects in a namespace: few, where names are many.
type kindIn struct{ namespace, kind string }

func (o objects) of(namespace, kind, name string) *entry { return o[kindIn{namespace, kind}][name] }

func (o objects) add(e *entry) {
	like := kindIn{e.Namespace, e.Kind}
	if o[like] == nil {
		o[like] = map[string]*entry{}
	}
	o[like][e.Name] = e
}

// remove forgets a workload's object, unless it is another workload's by now.
func (o objects) remove(e *entry) {
	like := kindIn{e.Namespace, e.Kind}
	if o[like][e.Name] != e {
		return
	}
	delete(o[like], e.Name)
	if len(o[like]) == 0 {
		delete(o, like)
	}
}
