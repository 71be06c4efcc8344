// Package simulation runs a log of jobs through Muster's own decisions and measures how
// long the jobs waited.
//
// Jobs are submitted and end as the log says, through package world, so it is the state
// and admission's Decide that choose who starts when. There is no other scheduler in here.
// Play takes any jobs, nodes and queues. Run takes a log of parallel jobs in the Standard
// Workload Format: each job is a gang of one pod per processor that it asked for, on nodes
// that hold one such pod each; its requested time is its declared run time.
//
// Rules, as in the published experiments on such logs (Gaussier et al., SC'15): jobs that
// ask for more processors than there are, or whose run time or requested time is not known,
// are left out and counted; a job that ran longer than it asked for is cut there; at equal
// times submissions come before ends, in the order of the log.
//
// It reads no clock and has no effects: the same log gives the same result.
package simulation

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/swf"
	"muster.dev/muster/pkg/whatif/world"
)

// Job is a gang that is submitted, and what becomes of it.
type Job struct {
	workload.Workload // of the queue that it names, or of the only one
	PriorityClass     string
	// Label names it in errors, such as "job 7 of line 3".
	Label     string
	Submitted time.Time
	// Run is how long it really runs, which no decision is based on.
	Run time.Duration
}

// Site is the cluster and the queues that jobs are submitted to.
type Site struct {
	Nodes  []capacity.Node
	Queues []state.Queue
	Policy quota.Config // valid
}

// job is a job under way.
type job struct {
	*Job
	limit   time.Duration // after which it is ended; zero for none
	started time.Time     // the last time; zero while it waits
	ended   time.Time
	ran     time.Duration // until its end
	// attempt counts its starts: the end of an attempt that was evicted does not come.
	attempt int
}

// ErrNoJobs is wrapped by the error of Run when there is nothing to simulate.
var ErrNoJobs = errors.New("the log has no jobs to simulate")

// MostNodes bounds the size of a simulated cluster.
const MostNodes = 100_000

// Options are what a simulation does beside the simulated decisions.
type Options struct {
	// ETA has a start time estimated for each job that waits, and the estimates scored.
	ETA bool
	// Progress, unless nil, is called now and then with the number of jobs that have been
	// submitted; what it returns ends the simulation when it is an error.
	Progress func(submitted, jobs int) error
}

// Run simulates the log on the number of nodes with the policy.
func Run(log swf.Log, nodes int, policy Policy, o Options) (Result, error) {
	result, _, err := simulate(log, nodes, policy, o)
	return result, err
}

func simulate(log swf.Log, nodes int, policy Policy, o Options) (Result, []*job, error) {
	if nodes < 1 || nodes > MostNodes {
		return Result{}, nil, fmt.Errorf("%d nodes: want 1 to %d", nodes, MostNodes)
	}
	jobs, left, err := OfLog(log, Shape{Most: nodes})
	if err != nil {
		return Result{}, nil, err
	}
	result, played, err := play(jobs, policy.On(Alike(nodes)), o)
	if err != nil {
		return Result{}, nil, err
	}
	for _, j := range played {
		if j.ended.IsZero() {
			return Result{}, nil, fmt.Errorf("%s was never started although the cluster is empty", j.Label)
		}
	}
	result.Policy, result.Left = policy.Name, left
	return result, played, nil
}

// Play simulates jobs, which are in the order of their submission, on a site.
func Play(jobs []Job, site Site, o Options) (Result, error) {
	if len(jobs) == 0 {
		return Result{}, ErrNoJobs
	}
	result, _, err := play(jobs, site, o)
	return result, err
}

func play(jobs []Job, site Site, o Options) (Result, []*job, error) {
	s := newRun(jobs, site, o.ETA)
	if err := s.run(o.Progress); err != nil {
		return Result{}, nil, err
	}
	result, err := s.measure(site.Nodes)
	if err == nil && s.estimator != nil {
		result.ETA = s.estimator.result()
	}
	return result, s.jobs, err
}

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
	estimator *estimator    // nil without estimates
}

func newRun(jobs []Job, site Site, eta bool) *run {
	s := &run{
		World: world.New(world.Options{Start: jobs[0].Submitted, Queues: site.Queues, Policy: site.Policy}),
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
	if eta {
		s.estimator = &estimator{
			queues: site.Queues, policy: site.Policy, nodes: site.Nodes, open: map[workload.ID]estimated{}, covered: make([]int, len(estimate.Levels())),
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
