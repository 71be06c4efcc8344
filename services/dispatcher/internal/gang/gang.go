// Package gang decides which pod of a gang goes to which reserved node.
//
// It is pure: commands and pods in, pins out. It is not for access to Kubernetes (package
// kubernetes) nor for deciding when to act (package reconcile).
package gang

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Pod is an observed pod of a gang.
type Pod struct {
	Namespace, Name, UID string
	// Cluster, Workload, Attempt and PodSet are from its labels.
	Cluster  string
	Workload workload.ID
	Attempt  int
	PodSet   string
	// Replica names the pods of a replica of several hosts, which belong together.
	Replica string
	// Hostname is what the pod is pinned to, or Node, where it is bound, when it
	// was not pinned; both empty while it waits at its gate.
	Hostname, Node string
	Gated          bool // the placement gate is on
	OtherGates     []string
	// Cleanup: it comes after the gang, in the head pod's place, and cleans up what the
	// head pod kept in Redis. KubeRay makes it of the head pod's template.
	Cleanup bool
	// Placeholder: it shows a gang to an autoscaler, and is not bound.
	Placeholder bool
	Ended       bool // its containers have all ended
	Deleting    bool
	// GoneBy is when a pod that is being deleted should have ended by itself.
	GoneBy time.Time
	// Controller makes such pods; empty when nothing does.
	Controller Controller
	// LastCheckpoint is when the pod reports that the work was saved; zero without a report.
	LastCheckpoint time.Time
}

// Controller is the object that controls a pod.
type Controller struct{ Kind, Name, UID string }

// Holds reports whether the pod takes room on a node or will.
func (p Pod) Holds() bool { return !p.Ended }

// Pin sends a pod to a node and lifts its gate.
type Pin struct {
	Pod      Pod
	Hostname string
}

// Missing are pods of a set that are wanted at the start and do not exist yet.
type Missing struct {
	Like Pod // one of the set that exists
	Pods int
}

// Pins returns the pods to pin now. A gang of which no pod has been sent anywhere begins
// once each of its sets has a pod: what the API server makes of the templates is known
// then. While some are missing, early decides whether those that exist are sent; nil is
// never. Of a gang that has begun, each pod that appears gets a free place of its set,
// also one that replaces another or that comes because the gang grows. KubeRay's
// submitter has no gate: it is pinned by its template.
//
// sent is where pods have been sent already, by UID. What is seen of them may
// still be from before; their places are taken all the same.
func Pins(command *event.GangCommand, pods []Pod, sent map[string]string, early func([]Missing) bool) []Pin {
	sets, begun := setsOf(command, pods, sent)
	missing, proven := missingOf(command, sets)
	if !begun && (!proven || len(missing) > 0 && (early == nil || !early(missing))) {
		return nil
	}
	var pins []Pin
	for _, set := range command.PodSets {
		if set.Role != workload.RoleSubmitter {
			pins = append(pins, pinsOf(command, set, sets[set.Name])...)
		}
	}
	return pins
}

// StillMissing returns the pods of the gang that do not exist yet, of the sets that have
// some.
func StillMissing(command *event.GangCommand, pods []Pod, sent map[string]string) []Missing {
	sets, _ := setsOf(command, pods, sent)
	missing, _ := missingOf(command, sets)
	return missing
}

// setsOf returns the gang's pods by set, and whether one of them has been sent to a node.
func setsOf(command *event.GangCommand, pods []Pod, sent map[string]string) (sets map[string][]Pod, begun bool) {
	sets = map[string][]Pod{}
	for _, pod := range present(command, pods, sent) {
		if pod.Cleanup {
			continue
		}
		begun = begun || !pod.Gated && !submitter(command, pod.PodSet)
		sets[pod.PodSet] = append(sets[pod.PodSet], pod)
	}
	return sets, begun
}

// missingOf returns what is missing of sets that have a pod, and whether all have one
// that are to. Replicas in slices have to be whole: their domains are chosen for them
// together.
func missingOf(command *event.GangCommand, sets map[string][]Pod) (missing []Missing, proven bool) {
	proven = true
	for _, set := range command.PodSets {
		there := sets[set.Name]
		lack := set.AtStart() - len(there)
		switch {
		case set.Role == workload.RoleSubmitter || lack <= 0:
		case len(there) == 0, inSlices(set) && there[0].Replica != "":
			proven = false
		default:
			missing = append(missing, Missing{there[0], lack})
		}
	}
	return missing, proven
}

func inSlices(set workload.PodSet) bool { return sliceSize(set) > 1 }

// sliceSize is how many pods of a set have one domain together; 0 when they have none.
func sliceSize(set workload.PodSet) int {
	if set.Topology == nil {
		return 0
	}
	return set.Topology.SliceSize
}

// Displaced returns the pods that were sent to a place that is not the gang's any
// more: it was lost, and another one is reserved instead. Their replacements are
// sent there. sent is as for Pins.
func Displaced(command *event.GangCommand, pods []Pod, sent map[string]string) []Pod {
	free, hostnames := places(command)
	var away []Pod
	for _, pod := range pods {
		if hostname, ok := sent[pod.UID]; ok && pod.Gated {
			pod.Gated, pod.Hostname = false, hostname
		}
		if pod.Namespace == command.Namespace && pod.Attempt == command.Attempt && !pod.Ended && !pod.Gated && !submitter(command, pod.PodSet) {
			away = append(away, pod)
		}
	}
	// A pod that is bound, and stays, has the first right to a place.
	rank := func(p Pod) int {
		switch {
		case p.Node != "" && !p.Deleting:
			return 0
		case p.Node != "":
			return 1
		}
		return 2
	}
	slices.SortFunc(away, func(a, b Pod) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name)) })
	var displaced []Pod
	for _, pod := range away {
		at := place{pod.PodSet, cmp.Or(pod.Hostname, hostnames[pod.Node], pod.Node)}
		if free[at]--; free[at] < 0 {
			displaced = append(displaced, pod)
		}
	}
	return displaced
}

// CleanupPins returns, while the object is being deleted, the pods that clean up
// after the gang: each has the place of a pod of its set that is gone.
func CleanupPins(command *event.GangCommand, pods []Pod, sent map[string]string) []Pin {
	there := present(command, pods, sent)
	i := slices.IndexFunc(there, func(p Pod) bool { return p.Cleanup && p.Gated })
	if i < 0 {
		return nil
	}
	set := there[i].PodSet
	return pinsOf(command, workload.PodSet{Name: set}, slices.DeleteFunc(there, func(p Pod) bool {
		return p.PodSet != set || p.Gated && !p.Cleanup // what has not started will not any more
	}))
}

// present returns the pods of the attempt that have a place or need one.
func present(command *event.GangCommand, pods []Pod, sent map[string]string) []Pod {
	var there []Pod
	for _, pod := range pods {
		if hostname, ok := sent[pod.UID]; ok && pod.Gated {
			pod.Gated, pod.Hostname = false, hostname
		}
		switch {
		case pod.Namespace != command.Namespace || pod.Attempt != command.Attempt || pod.Ended:
		case pod.Gated && pod.Deleting: // it never had a place and needs none
		default:
			there = append(there, pod)
		}
	}
	return there
}

// submitter reports whether the pod set is the one without gates.
func submitter(command *event.GangCommand, set string) bool {
	return slices.ContainsFunc(command.PodSets, func(s workload.PodSet) bool {
		return s.Name == set && s.Role == workload.RoleSubmitter
	})
}

// Replaces reports whether a command replaces the known one of its workload. It is true for
// the same command or a later one, by epoch, then order. Attempts do not count: after
// Postgres was restored to an older state a later leader may command an earlier attempt, or
// a workload that was forgotten.
func Replaces(command, known *event.GangCommand) bool {
	return known == nil || !known.Supersedes(command)
}
