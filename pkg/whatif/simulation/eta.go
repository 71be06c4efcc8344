package simulation

import (
	"fmt"
	"math"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
)

// ETA is how true the estimated start times were that jobs got when they were submitted
// and had to wait. A job that starts at once has none.
type ETA struct {
	// Estimated jobs had an estimate. Unknown ones could not be estimated.
	Estimated int `json:"estimated"`
	Unknown   int `json:"unknown"`
	// P90Coverage is the part of the estimated jobs that started by their p90, P50Coverage
	// by their p50.
	P90Coverage float64 `json:"p90Coverage"`
	P50Coverage float64 `json:"p50Coverage"`
	// MedianError is the median of the absolute difference between the wait and its p50,
	// MedianEstimated that of the waits themselves, both in seconds.
	MedianError     float64 `json:"medianErrorSeconds"`
	MedianEstimated float64 `json:"medianEstimatedWaitSeconds"`
	// Reliability has what each quantile covers: a true one covers its own level.
	Reliability []Coverage `json:"reliability"`
}

// Coverage is the part of the jobs that started by a quantile of their estimate.
type Coverage struct {
	Quantile float64 `json:"quantile"`
	Covered  float64 `json:"covered"`
}

// horizon is how far an estimate looks ahead.
const horizon = 90 * 24 * time.Hour

// estimator makes estimates beside a simulation. It learns from what has ended and started
// before, as a live one does.
type estimator struct {
	queues      []state.Queue
	policy      quota.Config
	nodes       []capacity.Node
	history     estimate.History
	calibration estimate.Calibration
	waiting     []workload.ID // submitted and not started, in order
	open        map[workload.ID]estimated
	unknown     int
	covered     []int // by quantile
	errors      []float64
	waits       []float64
	scored      func(workload.ID, estimate.Quantiles)
}

// estimated is an estimate that has not come true yet.
type estimated struct {
	made      time.Time
	wait      time.Duration
	quantiles estimate.Quantiles
}

// submitted makes an estimate for a job that has to wait.
func (e *estimator) submitted(s *run, id workload.ID) error {
	if !s.byID[id].started.IsZero() {
		return nil
	}
	e.waiting = append(e.waiting, id)
	snapshot := estimate.Snapshot{Now: s.Now(), Queues: e.queues, Policy: e.policy, Nodes: e.nodes}
	for _, end := range s.ends {
		if j := s.byID[end.id]; j != nil && j.attempt == end.attempt {
			snapshot.Running = append(snapshot.Running, s.record(end.id))
		}
	}
	for _, id := range e.waiting {
		snapshot.Waiting = append(snapshot.Waiting, s.record(id))
	}
	forecast, err := estimate.FastForward(snapshot, &e.history, estimate.Bounds{Until: []workload.ID{id}, Horizon: horizon})
	if err != nil {
		return fmt.Errorf("estimate the start of %s: %w", id, err)
	}
	at, known := forecast.Starts[id]
	if !known {
		e.unknown++
		return nil
	}
	wait := at.Sub(s.Now())
	pending := make([]estimate.Pending, 0, len(e.open))
	for _, other := range e.open {
		pending = append(pending, estimate.Pending{Estimated: other.wait, Waited: s.Now().Sub(other.made)})
	}
	e.calibration.Wait(pending)
	e.open[id] = estimated{s.Now(), wait, e.calibration.Quantiles(wait)}
	return nil
}

func (s *run) record(id workload.ID) workload.Record {
	record, _ := s.Record(id)
	return record
}

// started scores the estimate of a job.
func (e *estimator) started(id workload.ID, waited time.Duration) {
	e.waiting = slices.DeleteFunc(e.waiting, func(other workload.ID) bool { return other == id })
	made, known := e.open[id]
	if !known {
		return
	}
	delete(e.open, id)
	e.calibration.Score(made.wait, made.quantiles, waited)
	for i, at := range made.quantiles {
		if waited <= at {
			e.covered[i]++
		}
	}
	if e.scored != nil {
		e.scored(id, made.quantiles)
	}
	e.errors = append(e.errors, math.Abs((waited - made.quantiles[estimate.P50]).Seconds()))
	e.waits = append(e.waits, waited.Seconds())
}

func (e *estimator) result() *ETA {
	r := &ETA{Estimated: len(e.waits), Unknown: e.unknown}
	if r.Estimated == 0 {
		return r
	}
	for i, level := range estimate.Levels() {
		r.Reliability = append(r.Reliability, Coverage{level, float64(e.covered[i]) / float64(r.Estimated)})
	}
	r.P50Coverage, r.P90Coverage = r.Reliability[estimate.P50].Covered, r.Reliability[estimate.P90].Covered
	slices.Sort(e.errors)
	slices.Sort(e.waits)
	r.MedianError, r.MedianEstimated = quantile(e.errors, 0.5), quantile(e.waits, 0.5)
	return r
}
