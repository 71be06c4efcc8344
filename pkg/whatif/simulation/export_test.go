package simulation

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/swf"
)

// Starts is Run, with the time at which each simulated job was started, in the
// order of submission and in seconds since the start of the log.
func Starts(log swf.Log, nodes int, policy Policy) (result Result, starts []int64, err error) {
	result, jobs, err := simulate(log, nodes, policy, Options{})
	for _, j := range jobs {
		starts = append(starts, j.started.Unix())
	}
	return result, starts, err
}

// Estimate is an estimate of a job's wait, and how long it waited.
type Estimate struct {
	Quantiles estimate.Quantiles
	Waited    time.Duration
}

// Estimates is Run with estimates, and each of them with the wait that the job's own times have.
func Estimates(log swf.Log, nodes int, policy Policy) (result Result, all []Estimate, err error) {
	made := map[workload.ID]estimate.Quantiles{}
	result, jobs, err := simulate(log, nodes, policy, Options{ETA: true, scored: func(id workload.ID, q estimate.Quantiles) { made[id] = q }})
	for _, j := range jobs {
		if q, is := made[j.ID]; is {
			all = append(all, Estimate{q, j.started.Sub(j.Submitted)})
		}
	}
	return result, all, err
}
