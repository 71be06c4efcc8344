package forecast

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// scores compare what was first estimated for each workload with when it started.
type scores struct {
	open   map[workload.ID]open
	queues map[string]*scored
	// settled are those that were scored and are not kept yet.
	settled []store.ScoredEstimate
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
const counted = store.ScoresKept

func (s *scores) queue(name string) *scored {
	if s.queues == nil {
		s.queues, s.open = map[string]*scored{}, map[workload.ID]open{}
	}
	if s.queues[name] == nil {
		s.queues[name] = &scored{}
	}
	return s.queues[name]
}

// wait records in each queue which of its workloads still wait, and since when.
func (s *scores) wait(now time.Time) {
	pending := map[string][]estimate.Pending{}
	for _, o := range s.open {
		pending[o.queue] = append(pending[o.queue], estimate.Pending{Estimated: o.wait, Waited: now.Sub(o.made)})
	}
	for name, q := range s.queues {
		q.Wait(pending[name])
	}
}

// quantiles fills in the times of a workload that is to wait so much longer, and keeps its
// first estimate to be scored, unless the workload is held back.
func (s *scores) quantiles(w *workload.Record, held bool, now time.Time, wait time.Duration, made *workload.Estimate) estimate.Quantiles {
	q := s.queue(w.Queue).Quantiles(wait)
	made.P50, made.P90 = now.Add(q[estimate.P50]), now.Add(q[estimate.P90])
	if held {
		return q
	}
	if _, known := s.open[w.ID]; !known {
		s.open[w.ID] = open{w.Queue, now, wait, q}
	}
	return q
}

// heldBack reports whether a workload waits for what no estimate knows: the end of a hold, a
// change that lets it fit, or the time of its next attempt. How long it waits shows nothing about
// the estimates of its queue.
func heldBack(r *workload.Record) bool {
	if r.Hold != nil {
		return true
	}
	return r.Reason != nil && (r.Reason.Kind == workload.ReasonHeld || r.Reason.Kind == workload.ReasonNeverFits || r.Reason.Kind == workload.ReasonBackoff)
}

// settle scores those that have started, and drops those that have gone or are held back.
func (s *scores) settle(live []state.StoredWorkload, ended []workload.Record, metrics *Metrics) {
	queued := map[workload.ID]bool{}
	for i := range live {
		if r := &live[i].Record; r.Phase == workload.Queued {
			queued[r.ID] = !heldBack(r)
		} else {
			s.started(r, metrics)
		}
	}
	for i := range ended {
		s.started(&ended[i], metrics)
	}
	for id := range s.open {
		if !queued[id] { // it is held back, was cancelled before it started, or moved out of reach
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
	s.score(o, r.Times.Admitted)
	if len(s.settled) < mostUnkept {
		s.settled = append(s.settled, store.ScoredEstimate{
			MadeEstimate: store.MadeEstimate{Workload: r.ID, Queue: o.queue, Made: o.made, Wait: o.wait, Quantiles: o.quantiles}, Started: r.Times.Admitted,
		})
	}
	metrics.scored(o.queue, s.queue(o.queue).last)
}

// score notes when the workload of an estimate started.
func (s *scores) score(o open, started time.Time) {
	waited := started.Sub(o.made)
	q := s.queue(o.queue)
	q.Score(o.wait, o.quantiles, waited)
	if len(q.last) == counted {
		q.last = slices.Delete(q.last, 0, 1)
	}
	q.last = append(q.last, outcome{waited <= o.quantiles[estimate.P50], waited <= o.quantiles[estimate.P90], (waited - o.quantiles[estimate.P50]).Abs()})
}

// results are what came of the last estimates, by queue.
func (s *scores) results() map[string]query.EstimateScore {
	all := map[string]query.EstimateScore{}
	for name, q := range s.queues {
		if len(q.last) > 0 {
			all[name] = summed(q.last)
		}
	}
	return all
}

// summed is what came of some estimates, of which there is one at least.
func summed(last []outcome) query.EstimateScore {
	var within50, within90 int
	var off []time.Duration
	for _, o := range last {
		if o.within50 {
			within50++
		}
		if o.within90 {
			within90++
		}
		off = append(off, o.off)
	}
	slices.Sort(off)
	all := float64(len(last))
	return query.EstimateScore{
		Started: len(last), P50Coverage: float64(within50) / all, P90Coverage: float64(within90) / all, MedianErrorSeconds: off[(len(off)-1)/2].Seconds(),
	}
}
