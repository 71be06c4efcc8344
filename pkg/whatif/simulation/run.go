package simulation

import (
	"container/heap"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/world"
)

// run is a simulation under way.
type run struct {
	*world.World
	jobs []*job
	byID map[workload.ID]*job
	ends ends
	// starts counts the starts of jobs.
	starts int
	// unplayed are jobs that are refused or can never start.
	unplayed  unplayed
	evictions int
	lost      time.Duration // that evicted attempts had run
	lostUnits float64       // the same times the accelerators, in seconds
	estimator *estimator    // nil without estimates
}

func newRun(jobs []Job, site Site, o Options) *run {
	s := &run{
		World: world.New(world.Options{Start: jobs[0].Submitted, Queues: site.Queues, Policy: site.Policy, Victims: o.Victims}),
		byID:  map[workload.ID]*job{},
	}
	limits := map[string]time.Duration{}
	for _, q := range site.Queues {
		limits[q.Name] = time.Duration(q.Rules.MaxRunTime)
	}
	for i := range jobs {
		limit := time.Duration(jobs[i].Life.MaxRunTime)
		if limit == 0 {
			limit = limits[jobs[i].Queue]
		}
		s.jobs = append(s.jobs, &job{Job: &jobs[i], limit: limit})
	}
	for _, n := range site.Nodes {
		s.SetNode(n)
	}
	if o.ETA {
		s.estimator = &estimator{
			queues: site.Queues, policy: site.Policy, nodes: site.Nodes, open: map[workload.ID]estimated{}, covered: make([]int, len(estimate.Levels())),
			scored: o.scored,
		}
	}
	return s
}

// progressEvery is the number of submissions between two calls of progress.
const progressEvery = 1000

func (s *run) run(progress func(submitted, jobs int) error) error {
	for next := 0; next < len(s.jobs) || len(s.ends) > 0; {
		if next < len(s.jobs) && (len(s.ends) == 0 || !s.jobs[next].Submitted.After(s.ends[0].at)) {
			if err := s.submit(s.jobs[next]); err != nil {
				return err
			}
			if next++; progress != nil && next%progressEvery == 0 {
				if err := progress(next, len(s.jobs)); err != nil {
					return err
				}
			}
			continue
		}
		if err := s.finish(heap.Pop(&s.ends).(end)); err != nil {
			return err
		}
	}
	for _, j := range s.jobs {
		if record, known := s.Record(j.ID); known && j.ended.IsZero() {
			s.unplayed.add(j, "it never starts: "+record.Reason.Message)
		}
	}
	return nil
}

func (s *run) submit(j *job) error {
	s.byID[j.ID] = j
	s.Jump(j.Submitted)
	steps, err := s.Submit(j.Workload, j.PriorityClass)
	if err != nil {
		s.unplayed.add(j, "it is refused: "+err.Error())
		return nil
	}
	if err := s.note(steps); err != nil {
		return err
	}
	if record := s.record(j.ID); record.Reason != nil && record.Reason.Kind == workload.ReasonNeverFits {
		s.unplayed.add(j, record.Reason.Message)
		steps, err := s.Cancel(j.ID, "it can never start")
		if err != nil {
			return err
		}
		s.Forget(j.ID)
		return s.note(steps)
	}
	if s.estimator == nil {
		return nil
	}
	return s.estimator.submitted(s, j.ID)
}

func (s *run) finish(e end) error {
	s.Jump(e.at)
	if e.id == "" { // a grace or a back-off is over
		return s.note(s.Refresh())
	}
	j := s.byID[e.id]
	if j.attempt != e.attempt {
		return nil // it was evicted meanwhile
	}
	steps, err := s.End(e.id, event.OutcomeSucceeded)
	if err != nil {
		return err
	}
	j.ended = e.at
	if s.estimator != nil {
		record := s.record(e.id)
		s.estimator.history.Learn(&record.Workload, j.ran)
	}
	s.Forget(e.id)
	return s.note(steps)
}

// note takes in who was started and evicted, in the order in which it was.
func (s *run) note(steps []world.Step) error {
	for _, step := range steps {
		j := s.byID[step.ID]
		switch step.Phase {
		case workload.Admitted:
			s.started(j, step.At)
		case workload.Evicting:
			if j.started.IsZero() {
				continue // a repetition
			}
			s.evictions++
			s.lost += step.At.Sub(j.started)
			s.lostUnits += step.At.Sub(j.started).Seconds() * j.units()
			j.attempt++
			j.started = time.Time{}
			s.lookAt(step.At, step.EvictAt)
		case workload.Queued:
			s.lookAt(step.At, step.NotBefore)
		case workload.Failed:
			return fmt.Errorf("%s failed in a world where nothing fails: %s", j.Label, step.Reason.Message)
		}
	}
	return nil
}

func (s *run) started(j *job, at time.Time) {
	first := j.attempt == 0
	j.started, j.ran = at, j.Run
	if j.limit > 0 {
		j.ran = min(j.Run, j.limit)
	}
	s.starts++
	j.attempt++
	if s.estimator != nil && first {
		s.estimator.started(j.ID, at.Sub(j.Submitted))
	}
	heap.Push(&s.ends, end{at: at.Add(j.ran), seq: s.starts, id: j.ID, attempt: j.attempt})
}

// lookAt has time pass until then, if it is later than now.
func (s *run) lookAt(now, then time.Time) {
	if then.After(now) {
		heap.Push(&s.ends, end{at: then})
	}
}
