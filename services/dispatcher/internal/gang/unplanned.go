package gang

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Unplanned returns the pods, of those that the command's object made, that run
// or may begin to and are not what Muster admitted: their labels are not those of
// the templates as Muster stamped them. The templates were changed, or the
// pods. Without the labels nothing accounts for them, and nothing pins them.
func Unplanned(command *event.GangCommand, made []Pod) []Pod {
	var unplanned []Pod
	for _, pod := range made {
		planned := pod.Cluster == command.Cluster && pod.Workload == command.Workload && pod.Attempt == command.Attempt &&
			slices.ContainsFunc(command.PodSets, func(s workload.PodSet) bool { return s.Name == pod.PodSet })
		if !planned && !pod.Gated && !pod.Ended && !pod.Cleanup && pod.Namespace == command.Namespace {
			unplanned = append(unplanned, pod)
		}
	}
	return unplanned
}

// Members returns the pods that the command's workload may have made. Labels prove
// nothing: a pod that nothing controls, or another RayCluster, is not one. created
// are the UIDs of what was created, clusters those of its RayClusters; while nothing
// is known of these all pods are members.
func Members(pods []Pod, created, clusters []string) []Pod {
	if len(created) == 0 {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool {
		switch p.Controller.Kind {
		case "":
			return !slices.Contains(created, p.UID)
		case workload.KindRayCluster:
			return !slices.Contains(created, p.Controller.UID) && !slices.Contains(clusters, p.Controller.UID)
		}
		return false
	})
}

// Extra returns the pods of a gang that run, or may begin to, beyond the places of
// their pod set: where nothing holds them back, as under trusted placement. Those on
// nodes stay before those that wait.
func Extra(command *event.GangCommand, members []Pod) []Pod {
	places := map[string]int{}
	for _, p := range command.Placements {
		places[p.PodSet] += p.Pods
	}
	present := slices.DeleteFunc(slices.Clone(members), func(p Pod) bool {
		return p.Namespace != command.Namespace || p.Attempt != command.Attempt || p.Ended || p.Deleting || p.Gated || p.Cleanup ||
			submitter(command, p.PodSet)
	})
	slices.SortFunc(present, func(a, b Pod) int {
		if (a.Node == "") != (b.Node == "") {
			return cmp.Compare(b.Node, a.Node) // a node before none
		}
		return cmp.Compare(a.Name, b.Name)
	})
	var extra []Pod
	for _, pod := range present {
		if places[pod.PodSet]--; places[pod.PodSet] < 0 {
			extra = append(extra, pod)
		}
	}
	return extra
}
