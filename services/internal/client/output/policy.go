package output

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

// Cohorts is the tree of cohorts with their ClusterQueues, which are indented below the
// cohort that they are in.
func Cohorts(cohorts []quota.CohortUsage, all []query.ClusterQueue) Table {
	t := Table{Header: []string{"COHORT", "KIND", "SHARE", "QUOTA USED"}}
	depths := map[string]int{} // of those that are listed: a parent comes first
	for _, c := range cohorts {
		depth := 0
		if c.Parent != "" {
			depth = depths[c.Parent] + 1
		}
		depths[c.Name] = depth
		t.Rows = append(t.Rows, []string{indented(depth, c.Name), "Cohort", shareIn(c.Parent, c.Share), used(query.Queue{Quota: c.Quota})})
		for _, q := range all {
			if q.Cohort == c.Name {
				t.Rows = append(t.Rows, []string{indented(depth+1, q.Name), "ClusterQueue", shareIn(q.Cohort, q.Share), used(query.Queue{Quota: q.Quota})})
			}
		}
	}
	return t
}

func indented(depth int, name string) string { return strings.Repeat("  ", depth) + name }

// shareIn prints a share of what the parent lends; nothing without a parent.
func shareIn(parent string, s quota.Share) string {
	switch {
	case parent == "":
		return dash("")
	case s == quota.MaxShare:
		return "weight 0"
	}
	return fmt.Sprintf("%.1f %%", float64(s)/10_000)
}

// Flavors is the table of ResourceFlavors.
func Flavors(all []quota.Flavor) Table {
	t := Table{Header: []string{"NAME", "NODE LABELS", "NODE TAINTS", "TOLERATIONS"}}
	for _, f := range all {
		var labels, taints, tolerations []string
		for _, key := range slices.Sorted(maps.Keys(f.NodeLabels)) {
			labels = append(labels, key+"="+f.NodeLabels[key])
		}
		for _, taint := range f.NodeTaints {
			taints = append(taints, setOn(taint.Key, taint.Value, taint.Effect))
		}
		for _, toleration := range f.Tolerations {
			tolerations = append(tolerations, setOn(toleration.Key, toleration.Value, toleration.Effect))
		}
		t.Rows = append(t.Rows, []string{f.Name, dash(strings.Join(labels, ",")), dash(strings.Join(taints, ",")), dash(strings.Join(tolerations, ","))})
	}
	return t
}

// PriorityClasses is the table of WorkloadPriorityClasses, the highest first.
func PriorityClasses(all []quota.PriorityClass) Table {
	t := Table{Header: []string{"NAME", "VALUE"}}
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b quota.PriorityClass) int { return cmp.Compare(b.Value, a.Value) })
	for _, c := range sorted {
		t.Rows = append(t.Rows, []string{c.Name, strconv.Itoa(int(c.Value))})
	}
	return t
}

// setOn prints a taint or toleration as kubectl does: key=value:effect.
func setOn(key, value, effect string) string {
	if value != "" {
		key += "=" + value
	}
	if effect != "" {
		key += ":" + effect
	}
	return key
}
