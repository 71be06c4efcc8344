package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// entry is a live workload: one that is not final, or still holds capacity. A
// million of them may wait, so what only one that has been admitted needs is apart.
type entry struct {
	workload.Record
	order int64
	// attemptState is nil exactly while the workload waits.
	*attemptState
}

// attemptState is what the record of an admitted workload does not have about its
// present attempt. It is not stored.
type attemptState struct {
	deadline  time.Time // when the timer fires, see nextDeadline
	slowSince time.Time // when it was last noted that it starts slowly
	// replaceAt is when its lost places are replaced; zero while it has all. BeginDecisions sets
	// it again in a new term, and insert sets that of an announced one, which is stored.
	replaceAt   time.Time
	disruption  disruption
	placesFixed bool          // its places cannot be changed: the database refused that
	head        event.GangPod // as last observed
	// sizes of its worker groups, as the dispatcher sees them, and how many places
	// of each are to be kept; nil while it has not.
	sizes, keeps map[string]int
	sizesAt      time.Time  // when it reported them last
	created      []string   // UIDs of what the dispatcher created, as far as it reported that
	growth       *growth    // nil while it does not ask for more places
	scaleDown    *scaleDown // nil while it gives none up
	// giveUp is what it shall give up for another workload; nil for nothing. It is not stored:
	// a new term decides it again.
	giveUp      *event.GiveUp
	giveUpSince time.Time
	giveUpFor   *workload.Reason // the reason in its event
	// idleSince is zero while it is not idle; lastUsed while no annotation has when it was
	// used. futureUse is a time to come that was reported.
	idleSince, lastUsed, futureUse time.Time
	// askAt is when watcher and dispatcher are asked whether it is gone; zero for never.
	askAt time.Time
	// recheckAt is when its deadlines are looked at again while it waits for answers; zero
	// while it does not.
	recheckAt time.Time
	// heardAgain is when its cluster was heard again after a silence: its deadlines to be ready
	// and to heal begin then. It is stored. It is zero, or before the attempt, while that has
	// not happened.
	heardAgain time.Time
	// permitted: what the dispatcher may have created is stopped when the permission of the cluster
	// has run out. It has reported that of the object; until it does, all commands to create it
	// demand it. A new term has not seen these commands, and waits for the report.
	permitted bool
	// removalSent: the last command was to remove what exists of it.
	removalSent bool
}

// requests returns the request of one pod of a pod set.
func (e *entry) requests(podSet string) resource.List {
	for i := range e.PodSets {
		if e.PodSets[i].Name == podSet {
			return e.PodSets[i].Template.Requests
		}
	}
	return nil
}

func (e *entry) template(podSet string) *workload.Template {
	for i := range e.PodSets {
		if e.PodSets[i].Name == podSet {
			return &e.PodSets[i].Template
		}
	}
	return &workload.Template{}
}

// atWantedSize reports whether a pod set has as many pods as its owner wants.
func (e *entry) atWantedSize(set string, bound map[slot]int) bool {
	size, known := e.sizes[set]
	for at, pods := range bound {
		if at.PodSet == set {
			size -= pods
		}
	}
	return known && size <= 0
}

// admittedPods is how many pods of a set have places.
func (e *entry) admittedPods(set string) int {
	for i := range e.PodSets {
		if e.PodSets[i].Name == set {
			return e.PodSets[i].Count
		}
	}
	return 0
}

// wanted is how many pods of a set are waited for: as many as have places, or
// fewer when the owner of a RayCluster, or Ray's autoscaler, wants fewer now.
func (e *entry) wanted(set workload.PodSet) int {
	if size, known := e.sizes[set.Name]; known {
		return min(size, set.AtStart())
	}
	return set.AtStart()
}

// resetSizes brings the pod sets back to the sizes that were submitted, which a
// new attempt begins with.
func (e *entry) resetSizes() {
	if !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool { return set.Resized != 0 }) {
		return
	}
	e.PodSets = slices.Clone(e.PodSets)
	for i := range e.PodSets {
		e.PodSets[i].Count -= e.PodSets[i].Resized
		e.PodSets[i].Resized = 0
	}
}

func submitterOf(e *entry) string { return setOf(e, workload.RoleSubmitter) }

func setOf(e *entry, role string) string {
	for _, set := range e.PodSets {
		if set.Role == role {
			return set.Name
		}
	}
	return ""
}

func tearingDown(e *entry) bool {
	return e.Phase == workload.Evicting || e.Phase == workload.Cancelling || e.Phase.Final()
}
