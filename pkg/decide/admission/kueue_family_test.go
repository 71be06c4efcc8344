package admission_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// The models of this file, and those that use it, are written from Kueue's documentation: concepts/cluster_queue and
// concepts/fair_sharing. Nothing lacks but quota, and no gang is evicted.

// relative is a queue or a cohort of a tree without limits, and what its queues use.
type relative struct {
	name          string
	parent        *relative
	members       []*relative
	nominal, used int64 // own
	weight        int64
	strategy      string
	reclaim       string
	waiting       []*contender // of a queue
	blocked       bool         // its head has been tried in vain, and no gang passes it
}

// contender is a gang that waits in a queue.
type contender struct {
	id       workload.ID
	of       *relative
	priority int32
	order    int64
	gpus     int64
}

// before reports the order of two gangs of equal rights.
func (c *contender) before(other *contender) bool {
	return c.priority > other.priority || c.priority == other.priority && c.order < other.order
}

// sum adds up quota and use of all that is below.
func (r *relative) sum() (nominal, used int64) {
	nominal, used = r.nominal, r.used
	for _, m := range r.members {
		n, u := m.sum()
		nominal, used = nominal+n, used+u
	}
	return nominal, used
}

func (r *relative) root() *relative {
	for r.parent != nil {
		r = r.parent
	}
	return r
}

func (r *relative) height() (most int) {
	for _, m := range r.members {
		most = max(most, m.height()+1)
	}
	return most
}

// level is the height of the lowest cohort that has the quota, and of the tree if none has.
func (c *contender) level() int {
	for r := c.of; ; r = r.parent {
		if nominal, used := r.sum(); nominal-used >= c.gpus || r.parent == nil {
			return r.height()
		}
	}
}

// fits reports whether the tree has the quota, beside what is kept for heads of other queues.
func (c *contender) fits(kept int64) bool {
	nominal, used := c.of.root().sum()
	return c.gpus <= nominal-used-kept
}

// family is a tree whose queues are listed.
type family struct {
	root   *relative
	queues []*relative
}

// drawFamilyTree draws two to five queues in a tree of three cohorts, each with gangs that wait.
func drawFamilyTree(t *rapid.T, weights []int64, strategy string) family {
	root := &relative{name: "root", nominal: rapid.Int64Range(2, 6).Draw(t, "nominal of root")}
	cohorts := []*relative{root}
	for _, name := range []string{"left", "right"} {
		cohorts = append(cohorts, &relative{name: name, parent: root, nominal: rapid.Int64Range(0, 4).Draw(t, "nominal of "+name), weight: rapid.SampledFrom(weights).Draw(t, "weight of "+name)})
	}
	root.members = slices.Clone(cohorts[1:])
	f, order := family{root: root}, int64(0)
	for i := range rapid.IntRange(2, 5).Draw(t, "queues") {
		q := &relative{
			name: fmt.Sprint("q", i), parent: rapid.SampledFrom(cohorts).Draw(t, "cohort"), nominal: rapid.Int64Range(0, 4).Draw(t, "nominal"),
			weight: rapid.SampledFrom(weights).Draw(t, "weight"), strategy: strategy, reclaim: rapid.SampledFrom([]string{quota.Never, quota.LowerPriority, quota.Any}).Draw(t, "reclaim"),
		}
		q.parent.members = append(q.parent.members, q)
		for range rapid.IntRange(0, 4).Draw(t, "waiting") {
			q.waiting = append(q.waiting, &contender{
				of: q, priority: rapid.Int32Range(0, 2).Draw(t, "priority"), order: order, gpus: rapid.Int64Range(1, 4).Draw(t, "GPUs"), id: workload.ID(fmt.Sprintf("gang-%02d", order)),
			})
			order++
		}
		f.queues = append(f.queues, q)
	}
	return f
}

// config is the policy; preempts has the queues reclaim as they were drawn.
func (f family) config(t *rapid.T, fair, preempts bool) quota.Config {
	group := func(nominal int64) string {
		return fmt.Sprintf(`"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]`, nominal)
	}
	var cohorts, queues []string
	for _, c := range append([]*relative{f.root}, f.root.members[:2]...) {
		parent := ""
		if c.parent != nil {
			parent = fmt.Sprintf(`"parentName": %q, "fairSharing": {"weight": "%d"}, `, c.parent.name, c.weight)
		}
		cohorts = append(cohorts, fmt.Sprintf(`{"name": %q, %s%s}`, c.name, parent, group(c.nominal)))
	}
	for _, q := range f.queues {
		preemption := ""
		if preempts {
			preemption = fmt.Sprintf(`, "preemption": {"reclaimWithinCohort": %q}`, q.reclaim)
		}
		queues = append(queues, fmt.Sprintf(`{"name": %q, "cohortName": %q, "quotaCheckStrategy": "IgnoreUndeclared", "queueingStrategy": %q, "fairSharing": {"weight": "%d"}, %s%s}`,
			q.name, q.parent.name, q.strategy, q.weight, group(q.nominal), preemption))
	}
	return parsed(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": %t}, "cohorts": [%s], "clusterQueues": [%s]}`,
		fair, strings.Join(cohorts, ","), strings.Join(queues, ",")))
}

// admitted are the gangs that one decision admits, in its order, on a node with room for all.
func (f family) admitted(t *rapid.T, config quota.Config) (ids []workload.ID) {
	tree, err := quota.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s := admission.NewState(tree)
	s.SetNode(nodeOf("node", 64, 1000))
	for _, q := range f.queues {
		for _, c := range q.waiting {
			s.Enqueue(admission.Waiting{Order: c.order, Since: start, Workload: &workload.Workload{
				ID: c.id, Queue: q.name, Priority: c.priority, PodSets: []workload.PodSet{setOf("workers", int(c.gpus), 0, 1)},
			}})
		}
	}
	plan := admission.Decide(s, start)
	if len(plan.Evictions) > 0 {
		t.Fatalf("%+v are evicted", plan.Evictions)
	}
	for _, a := range plan.Admissions {
		ids = append(ids, a.Workload)
	}
	return ids
}

// heads are the next gangs of the queues, and in what order they are tried within one.
func (f family) heads() (heads []*contender) {
	for _, q := range f.queues {
		if len(q.waiting) > 0 {
			slices.SortFunc(q.waiting, func(a, b *contender) int {
				return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.order, b.order))
			})
			heads = append(heads, q.waiting[0])
		}
	}
	return heads
}

// nearest is the head whose quota comes from nearest by.
func nearest(heads []*contender) *contender {
	return slices.MinFunc(heads, func(a, b *contender) int {
		if by := cmp.Compare(a.level(), b.level()); by != 0 {
			return by
		}
		return map[bool]int{true: -1, false: 1}[a.before(b)]
	})
}
