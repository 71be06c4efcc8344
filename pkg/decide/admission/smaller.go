package admission

import (
	"fmt"
	"sort"
	"strings"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// sized is how a workload can start with certain sizes: at once, or after evictions.
type sized struct {
	assess     quota.Assess
	flavored   *flavoredSignature
	cluster    string
	placements []workload.Placement
	nomination *nomination // nil when it can start at once
	victims    []candidate
}

// startSmaller starts a workload that cannot start with all of its pods with as many as it
// can, or evicts gangs for that, and reports whether it did. As in Kueue the largest size
// is found by halving the range, and a size counts that can start after evictions. Where
// the smallest size cannot start, the workload waits for what that size lacks.
func (d *decision) startSmaller(w *Waiting, clusters []string, whole *tried) bool {
	least := d.state.optionsOf(w.queue, w.signature.least)
	t := tried{kept: whole.kept}
	if least.why != nil {
		t.over = least.why
	}
	found := d.trySize(w, least, clusters, &t)
	if found == nil {
		if why := t.reason(); why != nil {
			why = d.ofSmallest(w, why)
			t.over, t.noPlace = why, nil
		}
		*whole = t
		return false
	}
	steps := stepsOf(w.Workload.PodSets)
	sort.Search(steps, func(step int) bool {
		if step == 0 {
			return false // it was tried
		}
		w.class.cut = false // what was put off for another size does not count for this one
		other := d.trySize(w, d.transientOptions(w, sizedDown(w.Workload.PodSets, step, steps)), clusters, &tried{})
		if other != nil {
			found = other
		}
		return other != nil
	})
	switch {
	case d.putToChecks(w, found.assess, false): // for all of its pods, which the quota does not hold
	case found.nomination != nil:
		d.evictFor(found.nomination, found.victims)
	default:
		d.admit(w, found.assess, found.flavored, found.cluster, found.placements)
	}
	return true
}

// transientOptions returns the flavors that pod sets of a size may be given, for one
// search.
func (d *decision) transientOptions(w *Waiting, sets []workload.PodSet) *flavorOptions {
	o := &flavorOptions{}
	o.assignments, o.cut, o.why = w.queue.quota.Assignments(sets)
	for _, a := range o.assignments {
		o.flavored = append(o.flavored, &flavoredSignature{
			w: &workload.Workload{PodSets: d.state.tree.Effective(sets, a.Flavors)}, transient: true,
			verdicts: map[string]placement.Verdict{}, blocked: map[*equivalenceClass]bool{},
		})
	}
	return o
}

// trySize returns how the workload can start with the sizes of these options, nil when it
// cannot. It tries the assignments as start does.
func (d *decision) trySize(w *Waiting, o *flavorOptions, clusters []string, t *tried) *sized {
	var rest []quota.Assess
	for _, a := range d.assess(w, o) {
		if why := d.quotaKept(w, a); why != nil {
			t.over, t.kept = why, true
			continue
		}
		if a.Mode == quota.Within {
			flavored, offered := o.flavoredFor(a), d.state.offering(clusters, a.Flavors)
			cluster, placements, why := d.fit(w, a, flavored, offered)
			if why == nil && d.constrained(w, cluster) {
				cluster, placements, why = d.backfill(w, flavored, offered)
			}
			if why == nil {
				return &sized{assess: a, flavored: flavored, cluster: cluster, placements: placements}
			}
			t.missed(a, flavored, offered, why)
		} else {
			w.class.exceeds(overQuota{a.Over.Charge, a.Charges})
			if t.over == nil {
				t.over = a.Over.Reason()
			}
		}
		switch {
		case a.Mode == quota.Impossible:
		case !w.queue.quota.StopsWhenPreempting() && (a.Mode == quota.Within || !w.queue.quota.PrefersNearer()):
			rest = append(rest, a)
		default:
			if found := d.roomBy(w, a, o.flavoredFor(a)); found != nil {
				return found
			}
		}
	}
	var room choiceOfRoom
	for _, a := range rest {
		if room.consider(d.roomBy(w, a, o.flavoredFor(a))) {
			break
		}
	}
	return room.chosen(w)
}

// ofSmallest words the reason of the smallest size as that of the workload.
func (d *decision) ofSmallest(w *Waiting, why *workload.Reason) *workload.Reason {
	var sizes []string
	for _, set := range w.Workload.PodSets {
		if set.Spare() > 0 {
			sizes = append(sizes, fmt.Sprintf("%d of %d pods of %q", set.MinCount, set.Count, set.Name))
		}
	}
	same := *why
	same.Message += fmt.Sprintf(". That is its smallest size, with %s", strings.Join(sizes, " and "))
	return &same
}
