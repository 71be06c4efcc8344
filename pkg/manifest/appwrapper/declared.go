package appwrapper

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// demand compares what is declared with what the templates say, and returns room
// for what is declared beyond them.
func (r *reader) demand(it *item, sets []workload.PodSet) ([]workload.PodSet, error) {
	if len(it.declared) == 0 {
		if len(sets) == 0 && !podless(it.id) {
			r.warn("%s: Muster does not know which pods a %s makes: nothing is reserved for them; declare them in custompodresources (v1beta1) or podSets (v1beta2)",
				it.where, it.id.Kind)
		}
		return nil, nil
	}
	declared, known := resource.List{}, resource.List{}
	replicas := 0
	for _, d := range it.declared {
		replicas += d.replicas
		declared = declared.Plus(d.each.Times(int64(d.replicas)))
	}
	for _, set := range sets {
		known = known.Plus(set.Template.Requests.Times(int64(set.Count)))
	}
	if len(sets) == 0 {
		return r.declaredSets(it), nil
	}
	extra := resource.List{}
	for _, name := range declared.Names() {
		if name == resource.Pods {
			continue
		}
		if beyond := declared[name] - known[name]; beyond > 0 {
			extra[name] = beyond
		}
	}
	for _, name := range known.Names() {
		if name != resource.Pods && declared[name] < known[name] {
			r.warn("%s.custompodresources declare %s %s, but the pods of %s %s ask for %s: that is reserved",
				it.where, name, resource.Format(name, declared[name]), it.id.Kind, it.id.Name, resource.Format(name, known[name]))
		}
	}
	if len(extra) == 0 {
		return nil, nil
	}
	return spread(fmt.Sprintf("%d.declared", it.number), extra, int64(replicas)), nil
}

// spread divides amounts over pods, so that the sum is exact: the first pods get one unit
// more of what the number of pods does not divide. Pods that are alike are one set; pods
// that would get nothing are left out.
func spread(name string, total resource.List, pods int64) []workload.PodSet {
	ends := []int64{pods} // of runs of pods that are alike
	for _, amount := range total {
		if rest := amount % pods; rest > 0 {
			ends = append(ends, rest)
		}
	}
	slices.Sort(ends)
	var sets []workload.PodSet
	first := int64(0)
	for _, end := range slices.Compact(ends) {
		each := resource.List{}
		for _, of := range total.Names() {
			amount := total[of] / pods
			if first < total[of]%pods {
				amount++
			}
			if amount > 0 {
				each[of] = amount
			}
		}
		if len(each) > 0 {
			each[resource.Pods] = 1
			sets = append(sets, declaredSet(fmt.Sprintf("%s-%d", name, len(sets)), int(end-first), each))
		}
		first = end
	}
	if len(sets) == 1 {
		sets[0].Name = name
	}
	return sets
}

// declaredSets are the pods of an object that makes them in its own way.
func (r *reader) declaredSets(it *item) []workload.PodSet {
	var sets []workload.PodSet
	for i, d := range it.declared {
		if d.replicas == 0 {
			continue
		}
		each := d.each.Plus(resource.List{resource.Pods: 1})
		sets = append(sets, declaredSet(fmt.Sprintf("%d.declared-%d", it.number, i), d.replicas, each))
	}
	r.warn("%s: room is kept for the declared pods of %s %s, but Muster does not know them: it cannot send them to that room",
		it.where, it.id.Kind, it.id.Name)
	return sets
}

// declaredSet is room that is reserved without waiting for pods.
func declaredSet(name string, count int, each resource.List) workload.PodSet {
	return workload.PodSet{Name: name, Role: roleDeclared, Count: count, Later: count, Template: workload.Template{Requests: each}}
}
