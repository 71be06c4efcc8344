// Package simulation runs a log of parallel jobs through Muster's own decisions
// and measures how long the jobs waited.
//
// Each job is a gang of one pod per processor that it asked for, on nodes that
// hold one such pod each; its requested time is its declared run time. Jobs are
// submitted and end as the log says, through package world, so it is the
// state and admission's Decide that choose who starts when. There is no other
// scheduler in here.
//
// Rules, as in the published experiments on such logs (Gaussier et al., SC'15):
// jobs that ask for more processors than there are, or whose run time or
// requested time is not known, are left out and counted; a job that ran longer
// than it asked for is cut there; at equal times submissions come before ends,
// in the order of the log.
//
// It reads no clock and has no effects: the same log gives the same result.
package simulation

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/swf"
	"muster.dev/muster/pkg/whatif/world"
)

const (
	queueName   = "log"
	clusterName = "simulated"
	namespace   = "log"
	// processor is what each pod asks for one of, and each node has one of.
	processor = resource.Name("muster.dev/processor")
)

// job is a job of the log as it is simulated.
type job struct {
	swf.Job
	processors int
	run        time.Duration // cut to asked
	asked      time.Duration
	submitted  time.Time
	started    time.Time
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
	jobs, left := usable(log, nodes)
	switch {
	case len(log.Jobs) == 0:
		return Result{}, nil, fmt.Errorf("%w: it has none, only %d header lines; want a line of 18 numbers for each", ErrNoJobs, len(log.Headers))
	case len(jobs) == 0:
		return Result{}, nil, fmt.Errorf("%w: none of its %d can be simulated on %d nodes: %s", ErrNoJobs, len(log.Jobs), nodes, left)
	}
	s := newRun(jobs, nodes, policy, o.ETA)
	if err := s.run(o.Progress); err != nil {
		return Result{}, nil, err
	}
	result := measure(jobs, nodes, policy, left)
	if s.estimator != nil {
		result.ETA = s.estimator.result()
	}
	return result, jobs, nil
}

// usable returns the jobs that are simulated, in the order of their submission.
func usable(log swf.Log, nodes int) ([]*job, Left) {
	var jobs []*job
	var left Left
	for _, j := range log.Jobs {
		processors := j.AskProcessors
		if processors <= 0 {
			processors = j.Processors
		}
		switch {
		case processors <= 0:
			left.NoProcessors++
		case processors > int64(nodes):
			left.TooLarge++
		case j.Run <= 0:
			left.NoRunTime++
		case j.AskTime <= 0:
			left.NoRequestedTime++
		default:
			asked := time.Duration(j.AskTime) * time.Second
			jobs = append(jobs, &job{
				Job: j, processors: int(processors), asked: asked,
				run:       min(time.Duration(j.Run)*time.Second, asked),
				submitted: time.Unix(j.Submit, 0).UTC(),
			})
		}
	}
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.Submit, b.Submit) })
	return jobs, left
}

// run is a simulation under way.
type run struct {
	*world.World
	jobs []*job
	byID map[workload.ID]*job
	ends ends
	// starts counts the jobs that were started.
	starts    int
	estimator *estimator // nil without estimates
}

func newRun(jobs []*job, count int, policy Policy, eta bool) *run {
	queue := policy.Queue()
	queue.Name = queueName
	queues, config := []state.Queue{{Name: queueName, Namespaces: []string{namespace}}}, quota.Config{ClusterQueues: []quota.ClusterQueue{queue}}
	s := &run{
		World: world.New(world.Options{Start: jobs[0].submitted, Queues: queues, Policy: config}),
		jobs:  jobs, byID: map[workload.ID]*job{},
	}
	var nodes []capacity.Node
	for i := range count {
		nodes = append(nodes, capacity.Node{
			Cluster: clusterName, Name: fmt.Sprintf("node-%05d", i), Ready: true, Allocatable: resource.List{processor: 1, resource.Pods: 1},
		})
		s.SetNode(nodes[i])
	}
	if eta {
		s.estimator = &estimator{
			queues: queues, policy: config, nodes: nodes, open: map[workload.ID]estimated{}, covered: make([]int, len(estimate.Levels())),
		}
	}
	return s
}

// progressEvery is the number of submissions between two calls of progress.
const progressEvery = 1000

func (s *run) run(progress func(submitted, jobs int) error) error {
	for next := 0; next < len(s.jobs) || len(s.ends) > 0; {
		if next < len(s.jobs) && (len(s.ends) == 0 || !s.jobs[next].submitted.After(s.ends[0].at)) {
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
		if j.started.IsZero() {
			return fmt.Errorf("job %d of line %d was never started although the cluster is empty", j.Number, j.Line)
		}
	}
	return nil
}

func (s *run) submit(j *job) error {
	id := event.WorkloadID("log", fmt.Sprintf("%d/%d", j.Line, j.Number))
	s.byID[id] = j
	s.Jump(j.submitted)
	steps, err := s.Submit(workload.Workload{
		Submitter: fmt.Sprintf("user-%d", j.User),
		ID:        id, Queue: queueName, Namespace: namespace, Kind: "Job", Name: fmt.Sprintf("program%d-%d-%d", j.Executable, j.Number, j.Line), Digest: string(id),
		Life: workload.Life{RunTime: workload.Duration(j.asked)},
		PodSets: []workload.PodSet{{Name: "processors", Role: workload.RoleWorker, Count: j.processors, Template: workload.Template{
			Requests: resource.List{processor: 1, resource.Pods: 1},
		}}},
	}, "")
	if err != nil {
		return fmt.Errorf("job %d of line %d is refused: %w", j.Number, j.Line, err)
	}
	if err := s.note(steps); err != nil || s.estimator == nil {
		return err
	}
	return s.estimator.submitted(s, id)
}

func (s *run) finish(e end) error {
	s.Jump(e.at)
	steps, err := s.End(e.id, event.OutcomeSucceeded)
	if err != nil {
		return err
	}
	if s.estimator != nil {
		record := s.record(e.id)
		s.estimator.history.Learn(&record.Workload, s.byID[e.id].run)
	}
	s.Forget(e.id)
	return s.note(steps)
}

// note takes in who was started, in the order in which it was.
func (s *run) note(steps []world.Step) error {
	for _, step := range steps {
		switch step.Phase {
		case workload.Admitted:
			j := s.byID[step.ID]
			j.started = step.At
			s.starts++
			if s.estimator != nil {
				s.estimator.started(step.ID, step.At.Sub(j.submitted))
			}
			heap.Push(&s.ends, end{step.At.Add(j.run), s.starts, step.ID})
		case workload.Evicting, workload.Failed, workload.Cancelled:
			return errors.New("workload " + string(step.ID) + " became " + string(step.Phase) + " in a world where nothing fails")
		}
	}
	return nil
}
