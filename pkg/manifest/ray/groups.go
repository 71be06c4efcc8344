package ray

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// groupName is the annotation of a pod template that puts its pod set into a group.
const groupName = "podset-group-name"

// readGroups reads pod-set groups, under Kueue's rules: a group has two pod sets, one of a
// single pod, with the same required or preferred topology and without slices. The sets
// get the same flavors and, with a required topology, one domain.
func readGroups(members []member) error {
	groups := map[string][]*member{}
	var names []string
	for i := range members {
		m := &members[i]
		name, err := m.annotation(groupName)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if err := checkLabel(m.path+".metadata.annotations", "kueue.x-k8s.io/"+groupName, name); err != nil {
			return err
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], m)
	}
	for _, name := range names {
		if err := bindGroup(name, groups[name]); err != nil {
			return err
		}
	}
	return nil
}

// bindGroup checks one group and binds its pod sets to each other.
func bindGroup(name string, group []*member) error {
	where := group[0].path + ".metadata.annotations." + groupName
	if len(group) != 2 {
		return refuse(where, fmt.Sprintf("is the group of %d pod sets", len(group)), "want two pod sets in a group")
	}
	if group[0].set.Count != 1 && group[1].set.Count != 1 {
		return refuse(where, fmt.Sprintf("is the group of pod sets of %d and %d pods", group[0].set.Count, group[1].set.Count), "want one of them to have a single pod, such as the head")
	}
	for i, m := range group {
		t := m.set.Topology
		switch {
		case t == nil || t.Mode == "":
			return refuse(m.path+".metadata.annotations", "has "+groupName+" without a topology", "add "+requiredTopology+" or "+preferredTopology)
		case t.SliceSize > 1:
			return refuse(m.path+".metadata.annotations", "has "+groupName+" and "+sliceTopology, "choose one of them")
		case i > 0 && *t != *group[0].set.Topology:
			return refuse(m.path+".metadata.annotations", "has another topology than the other pod set of its group", "give both the same")
		}
	}
	for i, m := range group {
		m.set.Group = name
		if t := m.set.Topology; t.Mode == workload.TopologyRequired {
			together := workload.Together{TopologyKey: t.Level, PodSets: []string{group[1-i].set.Name}}
			m.set.Template.Together = append(slices.Clip(m.set.Template.Together), together)
		}
	}
	return nil
}
