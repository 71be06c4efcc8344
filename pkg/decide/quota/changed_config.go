package quota

import (
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// Raised returns the Config with the nominal quota of a ClusterQueue raised by an
// amount.
func (c Config) Raised(queue, flavor string, name resource.Name, by int64) Config {
	c.ClusterQueues = slices.Clone(c.ClusterQueues)
	for i := range c.ClusterQueues {
		q := &c.ClusterQueues[i]
		if q.Name != queue {
			continue
		}
		q.ResourceGroups = slices.Clone(q.ResourceGroups)
		for g := range q.ResourceGroups {
			group := &q.ResourceGroups[g]
			group.Flavors = slices.Clone(group.Flavors)
			for f := range group.Flavors {
				group.Flavors[f].Resources = slices.Clone(group.Flavors[f].Resources)
				for r := range group.Flavors[f].Resources {
					if of := &group.Flavors[f].Resources[r]; group.Flavors[f].Name == flavor && of.Name == name {
						of.Nominal = add(of.Nominal, by)
					}
				}
			}
		}
	}
	return c
}

// Resumed returns the Config with nothing held that keeps workloads of a
// LocalQueue, or of a ClusterQueue, from being admitted.
func (c Config) Resumed(namespace, local, queue string) Config {
	c.ClusterQueues, c.LocalQueues = slices.Clone(c.ClusterQueues), slices.Clone(c.LocalQueues)
	for i := range c.ClusterQueues {
		if c.ClusterQueues[i].Name == queue {
			c.ClusterQueues[i].StopPolicy = ""
		}
	}
	for i := range c.LocalQueues {
		if l := &c.LocalQueues[i]; l.Namespace == namespace && l.Name == local {
			l.StopPolicy = ""
		}
	}
	c.Holds = slices.DeleteFunc(slices.Clone(c.Holds), func(s QueueStop) bool {
		return s.Name == local && (s.Namespace == "" || s.Namespace == namespace)
	})
	c.BudgetHolds = slices.DeleteFunc(slices.Clone(c.BudgetHolds), func(h BudgetStop) bool {
		return h.Queue == local && (h.Namespace == "" || h.Namespace == namespace)
	})
	c.ClusterQueueHolds = slices.DeleteFunc(slices.Clone(c.ClusterQueueHolds), func(s QueueStop) bool { return s.Name == queue })
	return c
}
