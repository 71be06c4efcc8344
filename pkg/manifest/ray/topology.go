package ray

import (
	"fmt"
	"strconv"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// Annotations of a pod template about topology, in Kueue's domain or in
// Muster's.
const (
	requiredTopology  = "podset-required-topology"
	preferredTopology = "podset-preferred-topology"
	sliceTopology     = "podset-slice-required-topology"
	sliceSize         = "podset-slice-size"
	// unconstrainedTopology asks for what Muster does without any of them.
	unconstrainedTopology = "podset-unconstrained-topology"
	// sliceLayers are slices of several layers, which Muster does not place.
	sliceLayers = "podset-slice-required-topology-constraints"
)

// readTopology reads what annotations ask. Without a size a slice is a replica
// of several hosts.
func readTopology(members []member, i int) error {
	m := &members[i]
	values := map[string]string{}
	for _, name := range []string{requiredTopology, preferredTopology, sliceTopology, sliceSize, unconstrainedTopology, sliceLayers} {
		value, err := m.annotation(name)
		if err != nil {
			return err
		}
		values[name] = value
		if value != "" && (name == requiredTopology || name == preferredTopology || name == sliceTopology) {
			if err := checkLabel(m.path+".metadata.annotations."+name, value, ""); err != nil {
				return err
			}
		}
	}
	t := workload.Topology{}
	where := m.path + ".metadata.annotations"
	unconstrained := values[unconstrainedTopology] == "true"
	switch {
	case values[sliceLayers] != "":
		return refuse(where+"."+sliceLayers, "is set", "slices of several layers are not supported; want "+sliceTopology+" and "+sliceSize+" for one layer")
	case values[unconstrainedTopology] != "" && values[unconstrainedTopology] != "true" && values[unconstrainedTopology] != "false":
		return refuse(where+"."+unconstrainedTopology, "is "+fault.Quote(values[unconstrainedTopology]), "want true or false")
	case unconstrained && (values[requiredTopology] != "" || values[preferredTopology] != ""):
		return refuse(where, "has "+unconstrainedTopology+" and another topology", "choose one of them")
	case values[requiredTopology] != "" && values[preferredTopology] != "":
		return refuse(where, "has "+requiredTopology+" and "+preferredTopology, "choose one of them")
	case values[requiredTopology] != "":
		t.Mode, t.Level = workload.TopologyRequired, values[requiredTopology]
	case values[preferredTopology] != "":
		t.Mode, t.Level = workload.TopologyPreferred, values[preferredTopology]
	}
	if err := m.readSlices(&t, where, values[sliceTopology], values[sliceSize]); err != nil {
		return err
	}
	if t != (workload.Topology{}) {
		m.set.Topology = &t
	}
	return nil
}

func (m *member) readSlices(t *workload.Topology, where, level, size string) error {
	switch {
	case level == "" && size != "":
		return refuse(where+"."+sliceSize, "is set without "+sliceTopology, "set the label that the nodes of a slice share")
	case level == "":
		return nil
	case size == "" && m.hosts < 2:
		return refuse(where+"."+sliceTopology, "is set without "+sliceSize, "set how many pods a slice has")
	}
	t.SliceLevel, t.SliceSize = level, m.hosts
	if size != "" {
		number, err := strconv.Atoi(size)
		if err != nil || number < 1 {
			return refuse(where+"."+sliceSize, "is "+fault.Quote(size), "want a whole number from 1")
		}
		t.SliceSize = number
	}
	if m.hosts > 1 && t.SliceSize > 1 && t.SliceSize%m.hosts != 0 {
		return refuse(where+"."+sliceSize, fmt.Sprintf("is %d, and a replica has %d hosts", t.SliceSize, m.hosts), "want slices of whole replicas")
	}
	if m.set.Count%t.SliceSize != 0 {
		return refuse(where+"."+sliceSize, fmt.Sprintf("is %d, and there are %d pods", t.SliceSize, m.set.Count), "want pods in whole slices")
	}
	return nil
}

// annotation returns the value of an annotation in Muster's domain or in Kueue's.
func (m *member) annotation(name string) (string, error) {
	own, kueue := m.annotations["muster.dev/"+name], m.annotations["kueue.x-k8s.io/"+name]
	if own != "" && kueue != "" && own != kueue {
		return "", refuse(m.path+".metadata.annotations", fmt.Sprintf("has muster.dev/%s %s and kueue.x-k8s.io/%s %s", name, fault.Quote(own), name, fault.Quote(kueue)), "choose one of them")
	}
	if own != "" {
		return own, nil
	}
	return kueue, nil
}
