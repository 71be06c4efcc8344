package forecast

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
)

// scores hold what each workload was first told against when it started.
type scores struct {
	open   map[workload.ID]open
	queues map[string]*scored
}

// open is the first estimate of a workload that waits.
type open struct {
	queue     string
	made      time.Time
	wait      time.Duration
	quantiles estimate.Quantiles
}

// scored is what came of the estimates of a queue.
type scored struct {
	estimate.Calibration
	last []outcome // the last ones
}

// outcome is what came of one estimate.
type outcome struct {
	within50, within90 bool
	off                time.Duration // the start from the p50, either way
}

// counted is how many outcomes the metrics of a queue are of: the last ones.
const counted = 500

func (s *scores) queue(name string) *scored {
	if s.queues == nil {
		s.queues, s.open = map[string]*scored{}, map[workload.ID]open{}
	}
	if s.queues[name] == nil {
		s.queues[name] = &scored{}
	}
	return s.queues[name]
}

// quantiles fills in the times of a workload that is to wait so much longer, and keeps its
// first estimate to be scored.
func (s *scores) quantiles(w *workload.Record, now time.Time, wait time.Duration, made *workload.Estimate) {
	q := s.queue(w.Queue).Quantiles(wait)
	made.P50, made.P90 = now.Add(q[estimate.P50]), now.Add(q[estimate.P90])
	if _, known := s.open[w.ID]; !known {
		s.open[w.ID] = open{w.Queue, now, wait, q}
	}
}

// settle scores those that have started, and drops those that have gone.
func (s *scores) settle(live []state.StoredWorkload, ended []workload.Record, metrics *Metrics) {
	queued := map[workload.ID]bool{}
	for i := range live {
		if r := &live[i].Record; r.Phase == workload.Queued {
			queued[r.ID] = true
		} else {
			s.started(r, metrics)
		}
	}
	for i := range ended {
		s.started(&ended[i], metrics)
	}
	for id := range s.open {
		if !queued[id] { // it was cancelled before it started, or moved out of reach
			delete(s.open, id)
		}
	}
}

// started scores the estimate of a workload, if it has one and was admitted since.
func (s *scores) started(r *workload.Record, metrics *Metrics) {
	o, known := s.open[r.ID]
	if !known || r.Times.Admitted.Before(o.made) {
		return
	}
	delete(s.open, r.ID)
	waited := r.Times.Admitted.Sub(o.made)
	q := s.queue(o.queue)
	q.Score(o.wait, o.quantiles, waited)
	if len(q.last) == counted {
		q.last = slices.Delete(q.last, 0, 1)
	}
	q.last = append(q.last, outcome{waited <= o.quantiles[estimate.P50], waited <= o.quantiles[estimate.P90], (waited - o.quantiles[estimate.P50]).Abs()})
	metrics.scored(o.queue, q.last)
}
