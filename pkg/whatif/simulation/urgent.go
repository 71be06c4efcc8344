package simulation

import (
	"hash/fnv"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
)

// urgentPriority is above the priority of all jobs of a log.
const urgentPriority = 1000

// Urgent returns the jobs with the given percentage of them urgent: these have a higher priority.
// Which ones depends on their ids alone.
func Urgent(jobs []Job, percent int) []Job {
	marked := slices.Clone(jobs)
	for i := range marked {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(marked[i].ID))
		if int(sum.Sum32()%100) < percent {
			marked[i].Priority = urgentPriority
		}
	}
	return marked
}

// Preempting returns the policy with a queue in which jobs of a higher priority have others
// evicted.
func (p Policy) Preempting() Policy {
	p.queue.Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	return p
}

// units is how many accelerators a job has, or pods where it has none.
func (j *job) units() float64 {
	units := 0.0
	for name, amount := range j.Workload.Requests() {
		if resource.Whole(name) && name != resource.Pods {
			units = max(units, float64(amount))
		}
	}
	if units == 0 {
		units = float64(j.Workload.Pods())
	}
	return units
}
