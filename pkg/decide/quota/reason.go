package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Reason is what keeps a gang out of its quota, for a user.
func (o *Over) Reason() *workload.Reason {
	amount := func(n int64) string { return resource.Format(o.Resource, n) }
	shortage := &workload.QuotaShortage{
		Queue: o.Queue, Flavor: o.Flavor, Resource: o.Resource, Asked: o.Amount, Available: max(0, o.Available),
		Potential: o.Potential, Nominal: o.Nominal, Used: o.Used, Where: o.Where, Limit: o.Limit,
	}
	message := fmt.Sprintf("insufficient unused quota for %s in flavor %q of queue %q: requested %s, available %s, %s more needed (nominal quota %s, used %s; limited by %s of %s)",
		o.Resource, o.Flavor, o.Queue, amount(o.Amount), amount(shortage.Available), amount(o.Amount-o.Available),
		amount(o.Nominal), amount(o.Used), o.Limit, o.Where)
	if o.Amount > o.Potential {
		message = fmt.Sprintf("insufficient maximum quota for %s in flavor %q of queue %q: requested %s, maximum %s (limited by %s of %s); request less or raise the quota",
			o.Resource, o.Flavor, o.Queue, amount(o.Amount), amount(o.Potential), o.Limit, o.Where)
	}
	return &workload.Reason{Kind: workload.ReasonQuota, Message: message, Quota: shortage}
}

func (q *Queue) noFlavor(set *workload.PodSet, g *ResourceGroup, asked []resource.Name) *workload.Reason {
	var refused []string
	for _, f := range g.Flavors {
		refused = append(refused, fmt.Sprintf("flavor %q (%s)", f.Name, cmp.Or(q.tree.mismatch(f.Name, set), "its Topology is not that of the pod set's other flavors")))
	}
	return &workload.Reason{
		Kind: workload.ReasonQuota,
		Message: fmt.Sprintf("no flavor of queue %q matches pod set %q, which requests %s: %s",
			q.Name, set.Name, join(asked), strings.Join(refused, ", ")),
		Quota: &workload.QuotaShortage{Queue: q.Name, Resource: asked[0], Asked: set.Template.Requests[asked[0]], Where: "clusterQueue " + q.Name, Limit: "flavors"},
	}
}

func (q *Queue) noGroupFlavor(set *workload.PodSet) *workload.Reason {
	return &workload.Reason{
		Kind:    workload.ReasonQuota,
		Message: fmt.Sprintf("no flavor of queue %q matches all pod sets of group %q, which get the same flavors", q.Name, set.Group),
		Quota:   &workload.QuotaShortage{Queue: q.Name, Where: "clusterQueue " + q.Name, Limit: "flavors"},
	}
}

func (q *Queue) undeclared(set *workload.PodSet, names []resource.Name) *workload.Reason {
	slices.Sort(names)
	return &workload.Reason{
		Kind: workload.ReasonQuota,
		Message: fmt.Sprintf("queue %q has no quota for %s, which pod set %q requests; add it to coveredResources or set quotaCheckStrategy %s",
			q.Name, join(names), set.Name, IgnoreUndeclared),
		Quota: &workload.QuotaShortage{Queue: q.Name, Resource: names[0], Asked: set.Template.Requests[names[0]], Where: "clusterQueue " + q.Name, Limit: "coveredResources"},
	}
}

// since describes an operator's order: what it does, since when, by whom and why.
func since(does string, at time.Time, by, why string) string {
	text := fmt.Sprintf("%s since %s by %s", does, at.UTC().Format(time.RFC3339), by)
	if why != "" {
		text += ": " + why
	}
	return text
}
