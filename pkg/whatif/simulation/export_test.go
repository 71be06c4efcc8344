package simulation

import "muster.dev/muster/pkg/whatif/swf"

// Starts is Run, with the time at which each simulated job was started, in the
// order of submission and in seconds since the start of the log.
func Starts(log swf.Log, nodes int, policy Policy) (result Result, starts []int64, err error) {
	result, jobs, err := simulate(log, nodes, policy, Options{})
	for _, j := range jobs {
		starts = append(starts, j.started.Unix())
	}
	return result, starts, err
}
