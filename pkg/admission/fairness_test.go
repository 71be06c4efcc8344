package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// contest is a cohort whose queues all want more of one resource than there is,
// in gangs of the same size.
type contest struct {
	names   []string
	weights []int64 // in thousandths
	nominal []int64 // quota of each queue
	size    int64   // GPUs of a gang
	total   int64   // GPUs of the cohort
}

// drawContest draws two to six queues. What nobody has a quota for of his own, the
// cohort has.
func drawContest(t *rapid.T) contest {
	c := contest{size: rapid.Int64Range(1, 3).Draw(t, "GPUs of a gang")}
	for i := range rapid.IntRange(2, 6).Draw(t, "queues") {
		c.names = append(c.names, fmt.Sprintf("q%d", i))
		c.weights = append(c.weights, rapid.Int64Range(100, 5000).Draw(t, "weight"))
		c.nominal = append(c.nominal, rapid.SampledFrom([]int64{0, 0, 1, 5}).Draw(t, "nominal"))
		c.total += c.nominal[i]
	}
	c.total += rapid.Int64Range(c.size*4, 40).Draw(t, "GPUs of the cohort")
	return c
}

func (c contest) config(t *rapid.T, preemption string) quota.Config {
	group := func(nominal int64) string {
		return fmt.Sprintf(`[{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]`, nominal)
	}
	free := c.total
	queues := make([]string, len(c.names))
	for i, name := range c.names {
		free -= c.nominal[i]
		queues[i] = fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared", "queueingStrategy": "BestEffortFIFO",
			"resourceGroups": %s, "fairSharing": {"weight": "%dm"}, "preemption": {%s}}`, name, group(c.nominal[i]), c.weights[i], preemption)
	}
	return parsed(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": true},
		"cohorts": [{"name": "all", "resourceGroups": %s}], "clusterQueues": [%s]}`, group(free), strings.Join(queues, ",")))
}

// submit has the queue want the whole cohort for itself.
func (c contest) submit(m *model, queue int) {
	for i := range c.total/c.size + 1 {
		m.submit(&workload.Workload{
			ID: workload.ID(fmt.Sprintf("%s-%02d", c.names[queue], i)), Queue: c.names[queue],
			Priority: rapid.Int32Range(0, 2).Draw(m.t, "priority"),
			PodSets:  []workload.PodSet{setOf("workers", int(c.size), 0, 1)},
		}, i*int64(len(c.names))+int64(queue))
	}
}

// share is the weighted dominant share of a queue with so many gangs: what they
// take beyond its own quota, as a part of the cohort in millionths, divided by
// its weight; computed apart from package quota and rounded down as documented
// there.
func (c contest) share(queue int, gangs int64) int64 {
	beyond := max(0, gangs*c.size-c.nominal[queue])
	return beyond * 1_000_000 / c.total * 1000 / c.weights[queue]
}

// check holds the shares against the bound: with one gang more, no queue would
// have less than any other has. In other words, two shares differ by at most
// what one gang is of the share of the queue that has less.
func (c contest) check(m *model) {
	started := make([]int64, len(c.names))
	sum := int64(0)
	for id := range m.started {
		for i, name := range c.names {
			if m.gangs[id].Queue == name {
				started[i]++
				sum++
			}
		}
	}
	if sum != c.total/c.size {
		m.t.Fatalf("%d gangs of %d GPUs run on %d GPUs: the cohort is not full", sum, c.size, c.total)
	}
	for less := range c.names {
		for more := range c.names {
			if has, bound := c.share(more, started[more]), c.share(less, started[less]+1); has > bound {
				m.t.Fatalf("gangs %v in queues of weights %v: the share of %s is %d, beyond %d, which is that of %s with one gang more",
					started, c.weights, c.names[more], has, bound, c.names[less])
			}
		}
	}
}

// Fair shares are respected where all queues want more than there is: gangs
// start in the order of the shares, however nodes come and whatever priorities
// gangs have.
func TestFairSharesAreRespected(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawContest(t)
		m := newModel(t, c.config(t, ""))
		for i := range c.names {
			c.submit(m, i)
		}
		for i, left := 0, c.total; left > 0; i++ {
			gpus := rapid.Int64Range(1, left).Draw(t, "GPUs of a node")
			m.setNode(nodeOf(fmt.Sprintf("node-%d", i), 64, gpus))
			m.decide()
			left -= gpus
		}
		c.check(m)
	})
}

// And they are restored, by preemption, where one queue had everything before the
// others came: its second strategy, on by default, lets a share grow that stays
// below the other one.
func TestFairSharesAreRestored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawContest(t)
		m := newModel(t, c.config(t, `"reclaimWithinCohort": "Any"`))
		m.setNode(nodeOf("node", 64, c.total))
		c.submit(m, 0)
		m.decide()
		for i := range c.names[1:] {
			c.submit(m, i+1)
		}
		m.decide()
		m.calm()
		c.check(m)
	})
}
