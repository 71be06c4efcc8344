package simulation

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
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
	// Makespan is the time from the first submission to the last end; of several windows, the
	// sum.
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
	// a job ran on them; with several resources, of the one that is used most.
	Utilisation float64 `json:"utilisation"`
	// Evictions are those of jobs, and Lost is how long these attempts had run.
	Evictions int     `json:"evictions,omitempty"`
	Lost      float64 `json:"lostSeconds,omitempty"`
	// LostHours is Lost times the accelerators of the jobs, or their pods where they have none.
	LostHours float64 `json:"lostAcceleratorHours,omitempty"`
	// Unplayed jobs were refused or could never start. Examples say why.
	Unplayed int      `json:"unplayed,omitempty"`
	Examples []string `json:"unplayedExamples,omitempty"`
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

// String returns how many were left out, and why.
func (l Left) String() string {
	return fmt.Sprintf("%d ask for more processors than there are, %d for none, %d have no run time, %d no requested time",
		l.TooLarge, l.NoProcessors, l.NoRunTime, l.NoRequestedTime)
}

// measure sums up what has become of the jobs that have run, in one simulation or several.
func measure(runs []*run, nodes []capacity.Node) (Result, error) {
	r := Result{Nodes: len(nodes)}
	var waits []float64
	all, busy := 0, map[resource.Name]float64{}
	for _, s := range runs {
		r.Evictions, r.Lost, r.Unplayed = r.Evictions+s.evictions, r.Lost+s.lost.Seconds(), r.Unplayed+s.unplayed.count
		r.LostHours += s.lostUnits / 3600
		r.Examples = append(r.Examples, s.unplayed.examples...)
		waits = append(waits, r.add(s, busy)...)
		all += len(s.jobs)
	}
	r.Examples = r.Examples[:min(len(r.Examples), mostExamples)]
	r.Jobs = len(waits)
	if r.Jobs == 0 {
		return r, fmt.Errorf("%w: none of the %d has run; %s", ErrNoJobs, all, strings.Join(r.Examples, "; "))
	}
	r.MeanWait /= float64(r.Jobs)
	r.MeanFlow /= float64(r.Jobs)
	r.AverageBoundedSlowdown /= float64(r.Jobs)
	slices.Sort(waits)
	r.MedianWait, r.P95Wait, r.MaxWait = quantile(waits, 0.5), quantile(waits, 0.95), waits[len(waits)-1]
	r.Utilisation = utilisation(busy, nodes, r.Makespan)
	return r, nil
}

// add adds the sums of a simulation, and returns the waits of its jobs.
func (r *Result) add(s *run, busy map[resource.Name]float64) (waits []float64) {
	first, last := s.jobs[0].Submitted, s.jobs[0].Submitted
	for _, j := range s.jobs {
		if j.ended.IsZero() {
			continue
		}
		flow := j.ended.Sub(j.Submitted)
		slowdown := max(1, flow.Seconds()/max(j.ran, slowdownBound).Seconds())
		waits = append(waits, (flow - j.ran).Seconds())
		r.MeanWait += (flow - j.ran).Seconds()
		r.MeanFlow += flow.Seconds()
		r.AverageBoundedSlowdown += slowdown
		r.MaxBoundedSlowdown = max(r.MaxBoundedSlowdown, slowdown)
		for i := range j.PodSets {
			for name, amount := range j.PodSets[i].Template.Requests { // as a sum of whole numbers it could overflow
				busy[name] += float64(amount) * float64(j.PodSets[i].Count) * j.ran.Seconds()
			}
		}
		if j.ended.After(last) {
			last = j.ended
		}
	}
	r.Makespan += last.Sub(first).Seconds()
	return waits
}

// utilisation is that of the resource that is used most.
func utilisation(busy map[resource.Name]float64, nodes []capacity.Node, seconds float64) (most float64) {
	total := map[resource.Name]float64{}
	for _, n := range nodes {
		for name, amount := range n.Allocatable {
			total[name] += float64(amount)
		}
	}
	for name, used := range busy {
		if name != resource.Pods && total[name] > 0 {
			most = max(most, used/total[name]/seconds)
		}
	}
	return most
}

// unplayed are the jobs that cannot run.
type unplayed struct {
	count    int
	examples []string
}

// mostExamples bounds how many of them are named.
const mostExamples = 3

func (u *unplayed) add(j *job, why string) {
	u.count++
	if len(u.examples) < mostExamples {
		u.examples = append(u.examples, j.Label+": "+why)
	}
}

// quantile is the smallest value that at least the part q of them do not exceed.
func quantile(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
