package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// countPorts returns the ports with that number of pods added to each of asked, or
// removed.
func countPorts(taken []takenPort, asked []workload.HostPort, pods int) []takenPort {
	if len(asked) == 0 {
		return taken
	}
	counted := slices.Clone(taken)
	for _, port := range asked {
		i := slices.IndexFunc(counted, func(t takenPort) bool { return t.HostPort == port })
		if i < 0 {
			counted = append(counted, takenPort{HostPort: port})
			i = len(counted) - 1
		}
		counted[i].pods += pods
	}
	return slices.DeleteFunc(counted, func(t takenPort) bool { return t.pods == 0 })
}

// listPorts updates the ports in use on a node.
func (f *Fleet) listPorts(n *node) {
	n.inUse, n.inUseKey = nil, ""
	if len(n.ports) == 0 && len(n.UsedPorts) == 0 {
		return
	}
	n.inUse = slices.Clone(n.UsedPorts)
	for _, taken := range n.ports {
		if taken.pods > 0 {
			n.inUse = append(n.inUse, taken.HostPort)
		}
	}
	slices.SortFunc(n.inUse, func(a, b workload.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.IP, b.IP))
	})
	n.inUse = slices.Compact(n.inUse)
	n.inUseKey = fmt.Sprint(n.inUse)
}

// portConflict reports whether two pods, or a pod and a node, want the same
// port.
func portConflict(a, b []workload.HostPort) bool {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Conflicts) {
			return true
		}
	}
	return false
}
