package workload

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// What happens with the objects that users make with kubectl for a queue while their own cluster
// has no room.
const (
	// WaitAtHome: they wait for their own cluster.
	WaitAtHome = "wait"
	// MoveFromHome: they stay suspended where they are, and Muster creates another object where
	// the gang is admitted: in the home when it has room, else in another cluster.
	MoveFromHome = "move"
)

// ValidateHomeObjects returns what of the rule cannot be, as a fault.List; empty is WaitAtHome.
func ValidateHomeObjects(rule string) error {
	var faults fault.List
	if rule != "" && !slices.Contains([]string{WaitAtHome, MoveFromHome}, rule) {
		faults.Add("", "%q: want %s or %s", rule, WaitAtHome, MoveFromHome)
	}
	return faults.Err()
}

// MadeIn returns the cluster where a user made the workload's object with kubectl; "" when it came
// by a message.
func (w Workload) MadeIn() string {
	cluster, is := strings.CutPrefix(w.Submitter, ByKubernetes+"/")
	if !is {
		return ""
	}
	cluster, _, _ = strings.Cut(cluster, "/")
	return cluster
}

// Home returns the cluster where the gang runs or waits, because its object is there; "" when
// Muster creates the object wherever the gang is admitted.
func (w Workload) Home() string {
	if w.Life.Moves {
		return ""
	}
	return w.MadeIn()
}

// Name of an object that stands for another one.
const (
	// longestName is the longest name that KubeRay takes of any kind.
	longestName = 47
	// idInName is how much of the id of the workload is in the name.
	idInName = 8
)

// ObjectName is the name of the object that Muster creates. In the place of an object that moves
// it has the beginning of the workload's id behind it, because the user's object has the name in
// its cluster, and others may have it elsewhere.
func (w Workload) ObjectName() string {
	if !w.Life.Moves {
		return w.Name
	}
	id := string(w.ID)
	id = id[:min(len(id), idInName)]
	name := w.Name[:min(len(w.Name), longestName-1-len(id))]
	return strings.TrimRight(name, "-.") + "-" + id
}
