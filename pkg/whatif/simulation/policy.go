package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// Policy is a way to configure the queue, by the name that the field has for it.
type Policy struct {
	Name  string
	Means string // in a sentence for people
	queue quota.ClusterQueue
}

// Queue returns the settings of the queue, which has no name.
func (p Policy) Queue() quota.ClusterQueue { return p.queue }

// Policies lists what can be simulated.
func Policies() []Policy {
	return []Policy{
		{"fcfs", "first come, first served: no job passes another", quota.ClusterQueue{Strategy: quota.StrictFIFO}},
		{"first-fit", "any job that fits starts", quota.ClusterQueue{Strategy: quota.BestEffortFIFO}},
		{"easy", "backfill: others pass the head only if that does not delay it", backfill(quota.Submission, 0)},
		{"easy-sjbf", "the same, and shorter gangs pass before longer ones", backfill(quota.ShortestBackfill, 0)},
		{
			"shortest-first", "backfill, all by declared run time; who has waited for 72 hours comes first",
			backfill(quota.ShortestFirst, 72*time.Hour),
		},
		{
			"stretch", "the same; who has waited for 6 hours and 20 times the declared run time comes first",
			quota.ClusterQueue{Strategy: quota.Backfill, Backfill: &quota.BackfillPolicy{
				Order: quota.ShortestFirst, PatienceSeconds: int64(6 * time.Hour / time.Second), PatienceFactor: 20,
			}},
		},
		{"conservative-10", "backfill with reservations for the first ten", conservative(10)},
		{"conservative", "backfill with reservations for all, up to 1,000", conservative(quota.MaxDepth)},
	}
}

func conservative(depth int) quota.ClusterQueue {
	return quota.ClusterQueue{Strategy: quota.Backfill, Backfill: &quota.BackfillPolicy{Depth: depth}}
}

func backfill(order string, patience time.Duration) quota.ClusterQueue {
	return quota.ClusterQueue{Strategy: quota.Backfill, Backfill: &quota.BackfillPolicy{
		Order: order, PatienceSeconds: int64(patience / time.Second),
	}}
}

// conservativeTo begins the names of policies that differ in their depth only.
const conservativeTo = "conservative-"

// ParsePolicy returns the policy of that name, also conservative-N for any depth N that a queue
// may have.
func ParsePolicy(name string) (Policy, error) {
	if number, is := strings.CutPrefix(name, conservativeTo); is {
		if depth, err := strconv.Atoi(number); err == nil && depth >= 1 && depth <= quota.MaxDepth && strconv.Itoa(depth) == number {
			return Policy{name, fmt.Sprintf("backfill with reservations for the first %d", depth), conservative(depth)}, nil
		}
		return Policy{}, fmt.Errorf("policy %q: want %sN with N from 1 to %d, such as %s10", name, conservativeTo, quota.MaxDepth, conservativeTo)
	}
	var names []string
	for _, policy := range Policies() {
		if policy.Name == name {
			return policy, nil
		}
		names = append(names, policy.Name)
	}
	return Policy{}, fmt.Errorf("policy %q: want one of %s", name, strings.Join(names, ", "))
}
