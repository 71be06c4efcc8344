package simulation

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// slowdownBound is below which a run time counts as this long in the bounded
// slowdown, so that jobs of a second do not outweigh all others.
const slowdownBound = 10 * time.Second

// Result is the outcome of a simulation. Times are in seconds.
type Result struct {
	Policy string `json:"policy"`
	Nodes  int    `json:"nodes"`
	Jobs   int    `json:"jobs"`
	// Left are the jobs of the log that were not simulated.
	Left Left `json:"left"`
	// Makespan is the time from the first submission to the last end.
	Makespan   float64 `json:"makespanSeconds"`
	MeanWait   float64 `json:"meanWaitSeconds"`
	MedianWait float64 `json:"medianWaitSeconds"`
	P95Wait    float64 `json:"p95WaitSeconds"`
	MaxWait    float64 `json:"maxWaitSeconds"`
	// MeanFlow is the mean time from a submission to its job's end.
	MeanFlow float64 `json:"meanFlowSeconds"`
	// AverageBoundedSlowdown is the mean of max(1, flow / max(run, 10 s)).
	AverageBoundedSlowdown float64 `json:"averageBoundedSlowdown"`
	MaxBoundedSlowdown     float64 `json:"maxBoundedSlowdown"`
	// Utilisation is the part of the processors' time over the makespan in which
	// a job ran on them.
	Utilisation float64 `json:"utilisation"`
	// ETA is nil unless start times were estimated.
	*ETA
}

// Left counts the jobs that were left out, by cause.
type Left struct {
	TooLarge        int `json:"moreProcessorsThanNodes"`
	NoProcessors    int `json:"noProcessors"`
	NoRunTime       int `json:"noRunTime"`
	NoRequestedTime int `json:"noRequestedTime"`
}

// Total is the number of jobs left out.
func (l Left) Total() int { return l.TooLarge + l.NoProcessors + l.NoRunTime + l.NoRequestedTime }

// String says how many were left out, and why.
func (l Left) String() string {
	return fmt.Sprintf("%d ask for more processors than there are, %d for none, %d have no run time, %d no requested time",
		l.TooLarge, l.NoProcessors, l.NoRunTime, l.NoRequestedTime)
}

func measure(jobs []*job, nodes int, policy Policy, left Left) Result {
	r := Result{Policy: policy.Name, Nodes: nodes, Jobs: len(jobs), Left: left}
	waits := make([]float64, len(jobs))
	first, last, busy := jobs[0].submitted, jobs[0].submitted, 0.0
	for i, j := range jobs {
		wait, ended := j.started.Sub(j.submitted), j.started.Add(j.run)
		flow := wait + j.run
		slowdown := max(1, flow.Seconds()/max(j.run, slowdownBound).Seconds())
		waits[i] = wait.Seconds()
		r.MeanWait += wait.Seconds() / float64(len(jobs))
		r.MeanFlow += flow.Seconds() / float64(len(jobs))
		r.AverageBoundedSlowdown += slowdown / float64(len(jobs))
		r.MaxBoundedSlowdown = max(r.MaxBoundedSlowdown, slowdown)
		busy += j.run.Seconds() * float64(j.processors)
		if ended.After(last) {
			last = ended
		}
	}
	slices.Sort(waits)
	r.MedianWait, r.P95Wait, r.MaxWait = quantile(waits, 0.5), quantile(waits, 0.95), waits[len(waits)-1]
	r.Makespan = last.Sub(first).Seconds()
	r.Utilisation = busy / (r.Makespan * float64(nodes))
	return r
}

// quantile is the smallest value that at least the part q of them do not exceed.
func quantile(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
