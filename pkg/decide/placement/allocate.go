package placement

import (
	"muster.dev/muster/pkg/spec/workload"
)

// Allocate charges the placements of a gang, whatever is free there. It ignores
// placements of unknown pod sets.
func (f *Fleet) Allocate(w *workload.Workload, placements []workload.Placement) {
	f.charge(w, placements, 1)
	f.count(w, placements, 1)
}

// Release reverts Allocate.
func (f *Fleet) Release(w *workload.Workload, placements []workload.Placement) {
	f.charge(w, placements, -1)
	f.count(w, placements, -1)
}

func (f *Fleet) charge(w *workload.Workload, placements []workload.Placement, sign int64) {
	var of *workload.PodSet
	var requests vector
	for _, p := range placements {
		if of == nil || of.Name != p.PodSet {
			if of = podSet(w, p.PodSet); of == nil {
				continue
			}
			requests = f.columns.vector(of.Template.Requests)
		}
		n, was := f.open(p.Node)
		n.taken = n.taken.plus(requests, multiply(sign, int64(p.Pods)))
		n.ports = countPorts(n.ports, of.Template.HostPorts, int(sign)*p.Pods)
		f.settle(n, was)
	}
}

func podSet(w *workload.Workload, name string) *workload.PodSet {
	for i := range w.PodSets {
		if w.PodSets[i].Name == name {
			return &w.PodSets[i]
		}
	}
	return nil
}

// count adds or removes the pods of placements, except within what-ifs.
func (f *Fleet) count(w *workload.Workload, placements []workload.Placement, sign int64) {
	if len(f.savepoints) > f.forked() {
		return
	}
	for _, p := range placements {
		if set := podSet(w, p.PodSet); set != nil && hasDevices(&set.Template) {
			f.demand.add(templateKey(&set.Template), &set.Template, sign*int64(p.Pods))
		}
	}
}
