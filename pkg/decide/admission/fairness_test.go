package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
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

// drawContest draws two to six queues. The cohort has the quota that no queue has.
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
	for range c.total/c.size + 1 {
		c.submitOne(m, queue)
	}
}

func (c contest) submitOne(m *model, queue int) {
	i := len(m.order)
	m.submit(&workload.Workload{
		ID: workload.ID(fmt.Sprintf("%s-%03d", c.names[queue], i)), Queue: c.names[queue],
		Priority: rapid.Int32Range(0, 2).Draw(m.t, "priority"),
		PodSets:  []workload.PodSet{setOf("workers", int(c.size), 0, 1)},
	}, int64(i))
}

// share is the weighted dominant share of a queue with that number of gangs: what they
// take beyond its own quota, as a part of the cohort in millionths, divided by
// its weight; computed apart from package quota and rounded down as documented
// there.
func (c contest) share(queue int, gangs int64) int64 {
	beyond := max(0, gangs*c.size-c.nominal[queue])
	return beyond * 1_000_000 / c.total * 1000 / c.weights[queue]
}

// check holds the shares against the bound: with one gang more, no queue that
// wants one would have less than any other has. In other words, such a share is
// less than another by at most what one gang is of it.
func (c contest) check(m *model) {
	started, wants := make([]int64, len(c.names)), map[string]bool{}
	for id := range m.waiting {
		wants[m.gangs[id].Queue] = true
	}
	sum := int64(0)
	for id := range m.started {
		for i, name := range c.names {
			if m.gangs[id].Queue == name {
				started[i]++
				sum++
			}
		}
	}
	if len(wants) > 0 && sum != c.total/c.size {
		m.t.Fatalf("%d gangs of %d GPUs run on %d GPUs: the cohort is not full", sum, c.size, c.total)
	}
	for less := range c.names {
		if !wants[c.names[less]] {
			continue
		}
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

// And they are respected in the end whatever queues come in whatever order, take
// from each other in turn and end gangs in between.
func TestFairSharesHoldInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawContest(t)
		m := newModel(t, c.config(t, `"reclaimWithinCohort": "Any"`))
		m.setNode(nodeOf("node", 64, c.total))
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			queue := rapid.IntRange(0, len(c.names)-1).Draw(t, "queue")
			switch event := rapid.IntRange(0, 9).Draw(t, "event"); {
			case event == 0:
				c.submit(m, queue)
			case event <= 5:
				c.submitOne(m, queue)
			case event <= 7 && len(m.gangs) > 0:
				m.end(rapid.SampledFrom(slices.Sorted(maps.Keys(m.gangs))).Draw(t, "ended"))
			case event == 8 && len(m.going) > 0:
				m.gone(rapid.SampledFrom(slices.Sorted(maps.Keys(m.going))).Draw(t, "gone"))
			}
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "seconds")) * time.Second)
			m.decide()
		}
		m.calm()
		c.check(m)
	})
}

// drawFamily draws a tree of cohorts with fair sharing, some of its queues with
// preemption by priority within themselves.
func drawFamily(t *rapid.T) quota.Config {
	one := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	group := func(most int) string {
		return fmt.Sprintf(`[{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]`,
			rapid.IntRange(0, most).Draw(t, "nominal"))
	}
	weight := func() string { return one("weight", "0", "0.5", "1", "1", "3") }
	queues := make([]string, rapid.IntRange(2, 5).Draw(t, "queues"))
	for i := range queues {
		queues[i] = fmt.Sprintf(`{"name": "q%d", "cohortName": %q, "quotaCheckStrategy": "IgnoreUndeclared", "resourceGroups": %s, "fairSharing": {"weight": %q},
			"preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": %q}}`,
			i, one("cohort", "root", "left", "right"), group(3), weight(), one("within", "Never", "LowerPriority", "LowerOrNewerEqualPriority"))
	}
	return parsed(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": true}, "clusterQueues": [%s],
		"cohorts": [{"name": "root", "resourceGroups": %s}, {"name": "left", "parentName": "root", "resourceGroups": %s, "fairSharing": {"weight": %q}},
			{"name": "right", "parentName": "root", "fairSharing": {"weight": %q}}]}`, strings.Join(queues, ","), group(10), group(4), weight(), weight()))
}

// In trees of cohorts, with gangs of several sizes: no gang is left waiting for what a gang
// with the same charges has in a branch whose share is larger even with the waiting gang
// started.
func TestNoGangWaitsForWhatALargerShareHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawFamily(t))
		total := rapid.Int64Range(2, 24).Draw(t, "GPUs")
		m.setNode(nodeOf("node", 64, total))
		for i := range rapid.IntRange(1, 60).Draw(t, "events") {
			switch event := rapid.IntRange(0, 9).Draw(t, "event"); {
			case event <= 6:
				m.submit(&workload.Workload{
					ID: workload.ID(fmt.Sprintf("gang-%02d", i)), Queue: fmt.Sprintf("q%d", rapid.IntRange(0, len(m.config.ClusterQueues)-1).Draw(t, "queue")),
					Priority: rapid.Int32Range(0, 1).Draw(t, "priority"),
					PodSets:  []workload.PodSet{setOf("workers", rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "size"), 0, 1)},
				}, int64(i))
			case event == 7 && len(m.gangs) > 0:
				m.end(rapid.SampledFrom(slices.Sorted(maps.Keys(m.gangs))).Draw(t, "ended"))
			case event == 8 && len(m.going) > 0:
				m.gone(rapid.SampledFrom(slices.Sorted(maps.Keys(m.going))).Draw(t, "gone"))
			}
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "seconds")) * time.Second)
			m.decide()
		}
		m.calm()
		m.envy()
	})
}

// envy fails when a gang waits that may envy another queue.
func (m *model) envy() {
	tree, err := quota.New(m.config)
	if err != nil {
		m.t.Fatal(err)
	}
	charges := func(id workload.ID) []quota.Charge {
		flavors := []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "default"}}}
		return quota.ChargesOf(m.gangs[id].PodSets, flavors)
	}
	for id := range m.started {
		tree.Queue(m.gangs[id].Queue).Allocate(charges(id))
	}
	for waits := range m.waiting {
		for has := range m.started {
			mine, other := tree.Queue(m.gangs[waits].Queue), tree.Queue(m.gangs[has].Queue)
			if mine == other || !slices.Equal(charges(waits), charges(has)) || !mine.MayReclaimFrom(other, charges(waits)) {
				continue
			}
			if mine.FairToEvict(charges(waits), other, charges(has), quota.LessThanInitialShare) {
				m.t.Fatalf("%s of queue %s waits, and %s of queue %s has places, whose share is larger than that of the first would be: shares %v and %v; %+v",
					waits, mine.Name, has, other.Name, mine.Shares(), other.Shares(), m.state.Reason(waits))
			}
		}
	}
}
