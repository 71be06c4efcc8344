package simulation

import (
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/swf"
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
	// Victims is the order in which jobs are evicted for others.
	Victims admission.VictimOrder
	// Progress, unless nil, is called now and then with the number of jobs that have been
	// submitted; what it returns ends the simulation when it is an error.
	Progress func(submitted, jobs int) error

	// scored, unless nil, is for tests: it is called with each estimate when its job starts.
	scored func(workload.ID, estimate.Quantiles)
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
	s := newRun(jobs, site, o)
	if err := s.run(o.Progress); err != nil {
		return Result{}, nil, err
	}
	result, err := measure([]*run{s}, site.Nodes)
	if err == nil && s.estimator != nil {
		result.ETA = s.estimator.result()
	}
	return result, s.jobs, err
}
