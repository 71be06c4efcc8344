package estimate

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Snapshot is the live state at one moment.
type Snapshot struct {
	Now       time.Time
	Queues    []state.Queue
	Policy    quota.Config // valid
	PastUsage []quota.PastUsage
	Learned   []admission.Learned
	NodeGrace time.Duration
	Nodes     []capacity.Node
	// Running hold places, also while they are removed. Waiting are in the order of
	// submission. Neither is changed.
	Running, Waiting []workload.Record
	// Submit are submitted at Now, behind all that waits.
	Submit []Submission
}

// Submission is a workload that is submitted, with the name of its priority class; empty for none.
type Submission struct {
	workload.Workload
	PriorityClass string
}

// RunTimes predicts how long a workload holds its places in all, from its admission, given
// that it has held them for the time ran. It is not known where nothing has it.
type RunTimes interface {
	Predict(w *workload.Workload, ran time.Duration) (total time.Duration, known bool)
}

// Forecast is what a snapshot comes to when it is played forward.
type Forecast struct {
	// Starts has when each waiting gang is admitted, as far as it is within the bounds.
	Starts map[workload.ID]time.Time
	// Evicted are those of Running that are evicted in the play, in the order of their ids.
	Evicted []workload.ID
	// Refused is why a gang of Submit is not accepted.
	Refused map[workload.ID]string
	// Endless hold places, and until when is not known, in the order of their ids: a gang
	// without a start may wait for them.
	Endless []workload.ID
	// Cut: the bounds ended the play, so a gang without a start may still have one.
	Cut bool
}

// Bounds end a play that takes long. A zero field does not bound.
type Bounds struct {
	// Until ends it as soon as all of these have started.
	Until []workload.ID
	// Ends is the most ends of gangs that are played.
	Ends int
	// Horizon is how far the play goes beyond the snapshot.
	Horizon time.Duration
	// Enough ends it as soon as it is true; nil does not.
	Enough func() bool
}

// FastForward plays a snapshot forward: gangs end when their predicted time is over, and
// others start in their place as queue-manager decides. The error is of a snapshot that
// contradicts itself. It takes time in proportion to the starts and ends that it plays.
func FastForward(s Snapshot, runs RunTimes, bounds Bounds) (Forecast, error) {
	p, err := begin(s, runs, bounds)
	if err != nil {
		return Forecast{}, err
	}
	if err := p.run(s.Now, bounds); err != nil {
		return Forecast{}, err
	}
	p.forecast.Cut = len(p.timers) > 0
	slices.Sort(p.forecast.Endless)
	slices.Sort(p.forecast.Evicted)
	p.forecast.Evicted = slices.Compact(p.forecast.Evicted)
	return p.forecast, nil
}
