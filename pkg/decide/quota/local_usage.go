package quota

import (
	"maps"
	"math"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// localUsage is what a LocalQueue uses and used: the amounts of its started gangs.
type localUsage struct {
	pastRecord
	used resource.List
}

// LocalName is the name under which the past use of a LocalQueue is kept.
func LocalName(namespace, queue string) string { return namespace + "/" + queue }

// localOf returns the LocalQueue of such a name, nil when there is none.
func (t *Tree) localOf(name string) *LocalQueue {
	namespace, queue, _ := strings.Cut(name, "/")
	return t.Local(namespace, queue)
}

// AllocateFor counts the charges as used by a LocalQueue, and ReleaseFor no longer.
func (q *Queue) AllocateFor(local string, charges []Charge) {
	q.changeLocalUsage(local, charges, resource.List.Plus)
}

// ReleaseFor reverts AllocateFor.
func (q *Queue) ReleaseFor(local string, charges []Charge) {
	q.changeLocalUsage(local, charges, resource.List.Minus)
}

func (q *Queue) changeLocalUsage(local string, charges []Charge, change func(used, amounts resource.List) resource.List) {
	amounts := q.counted(charges)
	if q.tree.localHalfLife() == 0 || len(amounts) == 0 {
		return
	}
	u := q.tree.localUsage(local)
	q.tree.noteUsageChange(local, func() resource.List { return u.used })
	u.used = change(u.used, amounts)
	maps.DeleteFunc(u.used, func(_ resource.Name, amount int64) bool { return amount == 0 })
}

// localUsage returns the use of a LocalQueue, and begins to keep it.
func (t *Tree) localUsage(local string) *localUsage {
	u := t.localUsages[local]
	if u == nil {
		u = &localUsage{used: resource.List{}}
		t.localUsages[local] = u
	}
	return u
}

// counted are the amounts that count as used by a LocalQueue: as in Kueue, what quota
// covers. Of a queue without quota all count.
func (q *Queue) counted(charges []Charge) resource.List {
	amounts := resource.List{}
	for _, c := range charges {
		if c.Amount > 0 && (c.Flavor != "" || len(q.ResourceGroups) == 0) {
			amounts[c.Resource] = add(amounts[c.Resource], c.Amount)
		}
	}
	return amounts
}

// Enter counts an admission as if it had run for a sampling interval already (Kueue's entry
// penalty), so that a LocalQueue gets no more than the others while its use is young.
func (q *Queue) Enter(local string, charges []Charge) {
	t, half, amounts := q.tree, q.tree.localHalfLife(), q.counted(charges)
	if half == 0 || len(amounts) == 0 {
		return
	}
	u := t.localUsage(local)
	if used, pending := t.usageBefore[local]; pending {
		u.changes(t.advancedTo, used, half)
	}
	penalty := 1 - decay(t.SamplingInterval(), half)
	entered := make(map[resource.Name]float64, len(u.history.Used)+len(amounts))
	maps.Copy(entered, u.history.Used)
	for name, amount := range amounts {
		entered[name] += float64(float64(amount) * penalty)
	}
	u.history.Used = entered
	u.present = u.history
	t.usageChanged[local] = true
}

// UsageOf returns what a LocalQueue has used as of the last Advance, by which the workloads of
// its ClusterQueue are ordered: the weighted sum of its decayed use of all resources, in
// cores, bytes and pieces, divided by the weight of the LocalQueue. As in Kueue, weight zero
// is infinite use.
func (t *Tree) UsageOf(local string) float64 {
	weight := int64(defaultWeight)
	if l := t.localOf(local); l != nil {
		weight = weightOf(l.FairSharing)
	}
	if weight == 0 {
		return math.Inf(1)
	}
	sum, past := 0.0, t.PastOf(local).Used
	for _, name := range slices.Sorted(maps.Keys(past)) {
		factor, weighted := t.config.AdmissionFairSharing.ResourceWeights[name]
		if !weighted {
			factor = 1
		}
		sum = float64(sum + float64(factor*inUnits(name, past[name]))) // not fused, so that it is the same on every machine
	}
	return float64(sum*defaultWeight) / float64(weight)
}

// PastOf returns the past use of a LocalQueue as of the last Advance.
func (t *Tree) PastOf(local string) History {
	u, half := t.localUsages[local], t.localHalfLife()
	if u == nil || half == 0 || u.history.At.IsZero() {
		return History{At: t.advancedTo}
	}
	used := u.used
	if before, pending := t.usageBefore[local]; pending {
		used = before
	}
	return u.history.after(t.advancedTo, used, half)
}

// LocalPastUsage returns the past use of a LocalQueue as of the last Advance, for readers; nil where
// its ClusterQueue does not order by it.
func (t *Tree) LocalPastUsage(namespace, queue string) *workload.PastUse {
	q := t.queues[t.Leads(namespace, queue)]
	if q == nil || !q.OrdersByUsage() {
		return nil
	}
	local := LocalName(namespace, queue)
	past := &workload.PastUse{Namespace: namespace, Use: min(t.UsageOf(local), math.MaxFloat64), Weight: 1, Consumed: map[resource.Name]float64{}}
	if l := t.Local(namespace, queue); l != nil {
		past.Weight = float64(weightOf(l.FairSharing)) / defaultWeight
	}
	for name, amount := range t.PastOf(local).Used {
		past.Consumed[name] = inUnits(name, amount)
	}
	return past
}

// inUnits returns an amount in cores, bytes or pieces.
func inUnits(name resource.Name, amount float64) float64 {
	if name == resource.CPU {
		return amount / 1000
	}
	return amount
}

// PastLocal returns the past use of all LocalQueues as of the last Advance.
func (t *Tree) PastLocal() (all []PastUsage) {
	for name := range t.localUsages {
		all = append(all, PastUsage{name, t.PastOf(name)})
	}
	return all
}
