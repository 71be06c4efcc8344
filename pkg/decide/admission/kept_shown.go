package admission

import (
	"fmt"
	"reflect"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// keptForShown is why a gang does not take places that it has found: they are of use to a gang
// before it that shows itself, whose nodes come one after the other. nil when it may take them.
func (d *decision) keptForShown(w *Waiting, flavored *flavoredSignature, cluster string, places []workload.Placement) *workload.Reason {
	shown := d.state.shownIn(cluster)
	if shown == nil || w.Grows || !w.queue.quota.ShowsPlaceholders() || before(shown, w) > 0 {
		return nil
	}
	o := d.state.optionsOf(shown.queue, shown.signature)
	i := slices.IndexFunc(o.assignments, func(a quota.Assignment) bool { return reflect.DeepEqual(a.Flavors, shown.Asked.Flavors) })
	check := shown.queue.quota.Provisioning(shown.Asked.Flavors)
	if i < 0 || check == nil {
		return nil // its turn ends
	}
	fleet := d.state.fleets[cluster]
	var found answered
	lacking := func() (pods int) {
		sets, of := d.lackingPods(w.queue, fleet, o.flavored[i].w, check) // the candidate's search
		for _, set := range sets {
			pods += set.Pods
		}
		found.undecided, found.cut = found.undecided || of.undecided, found.cut || of.cut
		return pods
	}
	without := lacking()
	savepoint := fleet.Begin()
	fleet.Allocate(flavored.w, places)
	with := lacking()
	fleet.Rollback(savepoint)
	switch {
	case found.cut:
		return d.retryWhenAllowed(w.class)
	case found.undecided:
		w.class.spares()
		return &workload.Reason{
			Kind:    workload.ReasonUnknown,
			Message: fmt.Sprintf("undecided: it fits in cluster %s, and whether a gang before it, which is shown there as placeholder pods, could use its places is not known within the steps of a search", cluster),
		}
	case with <= without:
		return nil
	}
	w.class.spares()
	return &workload.Reason{
		Kind:    workload.ReasonBehindHead,
		Message: fmt.Sprintf("it fits in cluster %s, but its places are kept for a gang before it that is shown there as placeholder pods: that one would lack places for %d pods instead of %d", cluster, with, without),
	}
}
