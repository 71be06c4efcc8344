package quota

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Reason tells a user what keeps a gang out of its quota.
func (o *Over) Reason() *workload.Reason {
	amount := func(n int64) string { return resource.Format(o.Resource, n) }
	shortage := &workload.QuotaShortage{
		Queue: o.Queue, Flavor: o.Flavor, Resource: o.Resource, Asked: o.Amount, Available: max(0, o.Available),
		Potential: o.Potential, Nominal: o.Nominal, Used: o.Used, Where: o.Where, Limit: o.Limit,
	}
	message := fmt.Sprintf("it asks %s %s of flavor %q, but queue %q may use %s more (%s of %s; the queue uses %s, its nominal quota is %s)",
		o.Resource, amount(o.Amount), o.Flavor, o.Queue, amount(max(0, o.Available)), o.Limit, o.Where, amount(o.Used), amount(o.Nominal))
	if o.Amount > o.Potential {
		message = fmt.Sprintf("it asks %s %s of flavor %q, but queue %q can never use more than %s (%s of %s)",
			o.Resource, amount(o.Amount), o.Flavor, o.Queue, amount(o.Potential), o.Limit, o.Where)
	}
	return &workload.Reason{Kind: workload.ReasonQuota, Message: message, Quota: shortage}
}

func (q *Queue) noFlavor(set *workload.PodSet, g *ResourceGroup, asked []resource.Name) *workload.Reason {
	var refused []string
	for _, f := range g.Flavors {
		refused = append(refused, fmt.Sprintf("%q (%s)", f.Name, q.tree.flavors[f.Name].mismatch(&set.Template)))
	}
	return &workload.Reason{
		Kind: workload.ReasonQuota,
		Message: fmt.Sprintf("pods of pod set %q ask %s, but may have no flavor that queue %q has quota for: %s",
			set.Name, join(asked), q.Name, strings.Join(refused, ", ")),
		Quota: &workload.QuotaShortage{Queue: q.Name, Resource: asked[0], Asked: set.Template.Requests[asked[0]], Where: "clusterQueue " + q.Name, Limit: "flavors"},
	}
}

func (q *Queue) undeclared(set *workload.PodSet, names []resource.Name) *workload.Reason {
	slices.Sort(names)
	return &workload.Reason{
		Kind: workload.ReasonQuota,
		Message: fmt.Sprintf("pods of pod set %q ask %s, of which queue %q has no quota; cover it, or set quotaCheckStrategy %s",
			set.Name, join(names), q.Name, IgnoreUndeclared),
		Quota: &workload.QuotaShortage{Queue: q.Name, Resource: names[0], Asked: set.Template.Requests[names[0]], Where: "clusterQueue " + q.Name, Limit: "coveredResources"},
	}
}
