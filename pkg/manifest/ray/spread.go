package ray

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

func readSpread(members []member, i int) error {
	m := &members[i]
	for j, c := range m.spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		where := fmt.Sprintf("%s.spec.topologySpreadConstraints[%d]", m.path, j)
		switch {
		case c.WhenUnsatisfiable != corev1.DoNotSchedule:
			return refuse(where+".whenUnsatisfiable", "is "+fault.Quote(string(c.WhenUnsatisfiable)), "want DoNotSchedule or ScheduleAnyway")
		case c.MaxSkew < 1:
			return refuse(where+".maxSkew", fmt.Sprintf("is %d", c.MaxSkew), "want 1 or more")
		case c.MinDomains != nil && *c.MinDomains != 1:
			// kube-scheduler counts the domains of nodes that a pod's selector allows:
			// one, when it is pinned.
			return refuse(where+".minDomains", fmt.Sprintf("is %d", *c.MinDomains), "remove it: pods that are pinned to their nodes cannot obey it")
		case c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy != corev1.NodeInclusionPolicyHonor:
			return refuse(where+".nodeAffinityPolicy", "is "+fault.Quote(string(*c.NodeAffinityPolicy)), "want Honor or nothing")
		case c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyIgnore:
			return refuse(where+".nodeTaintsPolicy", "is "+fault.Quote(string(*c.NodeTaintsPolicy)), "want Ignore or nothing")
		}
		if err := checkLabel(where+".topologyKey", c.TopologyKey, ""); err != nil {
			return err
		}
		names, err := selects(where, members, i, c.LabelSelector, c.MatchLabelKeys)
		if err != nil {
			return err
		}
		if m.set.Count > 0 && !slices.Equal(names, []string{m.set.Name}) {
			return refuse(where+".labelSelector", fmt.Sprintf("matches %q", names),
				fmt.Sprintf("want one that matches the pods of %q and no others, such as matchLabels %s: %s", m.set.Name, groupLabel, m.set.Name))
		}
		m.set.Template.Spread = append(m.set.Template.Spread, workload.Spread{TopologyKey: c.TopologyKey, MaxSkew: int(c.MaxSkew)})
	}
	return nil
}

// groupLabel names the worker group on its pods.
const groupLabel = "ray.io/group"
