package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// defaultCluster is where nodes are that name no cluster.
const defaultCluster = "cluster"

// podSlots is how many pods a node takes that does not say.
const podSlots = 110

// mostNodes keeps a typing error from filling the memory.
const mostNodes = 20_000

// list turns quantities into exact amounts.
func (a Amounts) list(path string) (resource.List, error) {
	amounts := resource.List{}
	var faults fault.List
	for _, name := range sortedKeys(a) {
		at := fault.Key(path, string(name))
		quantity, err := kube.ParseQuantity(string(a[name]))
		if err != nil {
			faults.Add(at, `%q is no amount; want a number, with a suffix if need be, such as "500m", 4 or "16Gi"`, string(a[name]))
			continue
		}
		exact, err := kube.Amounts(corev1.ResourceList{corev1.ResourceName(name): quantity})
		if err != nil {
			faults.Add(at, "%s", err)
			continue
		}
		amounts[name] = exact[name]
	}
	return amounts, faults.Err()
}

// number is the place of a node's number in the pattern of a group.
var number = regexp.MustCompile(`\{(0+)\}`)

// nodes returns the nodes of the group.
func (g *NodeGroup) nodes(path string) ([]capacity.Node, error) {
	var faults fault.List
	count := 1
	if g.Count != nil {
		count = *g.Count
	}
	if count < 0 || count > mostNodes {
		faults.Add(path+".count", "%d: want 0 to %d", count, mostNodes)
	}
	at := number.FindStringSubmatchIndex(g.Name)
	switch {
	case g.Name == "":
		faults.Add(path+".name", "is missing; want a name, such as gpu-{00}, where zeros in braces are the number")
	case at == nil && (strings.ContainsAny(g.Name, "{}") || count > 1):
		faults.Add(path+".name", "%q for %d nodes: want the place of the number as zeros in braces, such as gpu-{00}", g.Name, count)
	}
	if len(g.Allocatable) == 0 {
		faults.Add(path+".allocatable", "is missing; want what pods may use, such as {cpu: 96, memory: 512Gi, nvidia.com/gpu: 8}")
	}
	allocatable, err := g.Allocatable.list(path + ".allocatable")
	faults.Under("", err)
	if _, given := g.Allocatable[resource.Pods]; !given {
		allocatable[resource.Pods] = podSlots
	}
	unmanaged, err := g.Unmanaged.list(path + ".unmanaged")
	faults.Under("", err)
	for i, taint := range g.Taints {
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, taint.Effect) {
			faults.Add(fault.Index(path+".taints", i)+".effect", "%q: want NoSchedule, PreferNoSchedule or NoExecute", taint.Effect)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	nodes := make([]capacity.Node, count)
	for i := range nodes {
		name := g.Name
		if at != nil {
			name = fmt.Sprintf("%s%0*d%s", g.Name[:at[0]], at[3]-at[2], i, g.Name[at[1]:])
		}
		labels := map[string]string{capacity.HostnameLabel: name}
		maps.Copy(labels, g.Labels)
		nodes[i] = capacity.Node{
			Cluster: g.cluster(), Name: name, Labels: labels, Taints: g.Taints, Ready: !g.NotReady, Cordoned: g.Cordoned,
			Allocatable: allocatable, Unmanaged: unmanaged,
		}
	}
	return nodes, nil
}

func (g *NodeGroup) cluster() string {
	if g.Cluster == "" {
		return defaultCluster
	}
	return g.Cluster
}

// workload returns the gang as it is submitted, but for its namespace, which the
// queue fills in. Beside an error it has its name, where there is one.
func (f *File) workload(path string, g *Gang, queues []state.Queue) (workload.Workload, error) {
	var faults fault.List
	w := workload.Workload{Queue: g.Queue, Namespace: g.Namespace, Name: g.Name, Kind: ray.RayCluster}
	if len(g.Manifest) > 0 {
		object, err := ray.Read(g.Manifest)
		faults.Under(path+".manifest", err)
		w.Kind, w.PodSets, w.Life = object.Kind, object.PodSets, object.Life
		if w.Name == "" {
			w.Name = object.Name
		}
		if w.Namespace == "" {
			w.Namespace = object.Namespace
		}
	}
	for i := range g.Pods {
		set, err := g.Pods[i].Spec(fault.Index(path+".pods", i))
		faults.Under("", err)
		if slices.ContainsFunc(w.PodSets, func(other workload.PodSet) bool { return other.Name == set.Name && set.Name != "" }) {
			faults.Add(fault.Index(path+".pods", i)+".name", "%q is a duplicate; want another name", set.Name)
		}
		w.PodSets = append(w.PodSets, set)
	}
	if w.Name == "" && !faults.Within(path+".manifest") {
		faults.Add(path+".name", "is missing; want a name by which the steps can refer to the workload")
	}
	if (len(g.Manifest) > 0) == (len(g.Pods) > 0) {
		faults.Add(path, "want either pods or a manifest, not %s", map[bool]string{true: "both", false: "neither"}[len(g.Pods) > 0])
	}
	if w.Queue == "" && len(queues) == 1 {
		w.Queue = queues[0].Name
	}
	if w.Queue == "" && len(queues) != 1 {
		var names []string
		for _, q := range queues {
			names = append(names, q.Name)
		}
		faults.Add(path+".queue", "is missing; want one of %s", strings.Join(names, ", "))
	}
	if g.Priority != nil && g.PriorityClass != "" {
		faults.Add(path+".priorityClass", "there is priority, too; want one of them")
	}
	if g.Priority != nil {
		w.Priority = *g.Priority
	}
	declared, err := g.RunTime.duration(path + ".runTime")
	faults.Under("", err)
	if declared > 0 {
		w.Life.RunTime = workload.Duration(declared)
	}
	w.ID, w.Digest = workload.ID(w.Name), w.Name
	return w, faults.Err()
}

// Spec returns the pod set as decisions take it; path names it in faults.
func (s *PodSet) Spec(path string) (workload.PodSet, error) {
	var faults fault.List
	count := 1
	if s.Count != nil {
		count = *s.Count
	}
	if s.Name == "" {
		faults.Add(path+".name", "is missing; want a name, such as workers")
	}
	if count < 1 || count > ray.MaxPods {
		faults.Add(path+".count", "%d: want 1 to %d", count, ray.MaxPods)
	}
	if s.MinCount < 0 || s.MinCount > count {
		faults.Add(path+".minCount", "%d: want 1 to %d, or nothing", s.MinCount, count)
	}
	requests, err := s.Requests.list(path + ".requests")
	faults.Under("", err)
	requests[resource.Pods] = 1
	return workload.PodSet{Name: s.Name, Role: workload.RoleWorker, Count: count, MinCount: s.MinCount, Template: workload.Template{
		Requests: requests, NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations,
	}}, faults.Err()
}

// placements are where the pods of a running gang are reported to be.
func (g *Gang) placements(path string, w *workload.Workload, known map[string]capacity.Node) ([]workload.Placement, string, error) {
	var faults fault.List
	var places []workload.Placement
	var sets []string
	cluster := ""
	for _, set := range w.PodSets {
		sets = append(sets, set.Name)
	}
	for _, name := range sortedKeys(g.Places) {
		if !slices.Contains(sets, name) {
			faults.Add(fault.Key(path+".places", name), "%q: there is no pod set of this name; there are %s", name, strings.Join(sets, ", "))
		}
	}
	misspelt := len(faults) > 0
	for _, set := range w.PodSets {
		at := fault.Key(path+".places", set.Name)
		sum, wrong := 0, len(faults)
		for _, name := range sortedKeys(g.Places[set.Name]) {
			node, there := known[name]
			switch pods := g.Places[set.Name][name]; {
			case !there:
				faults.Add(fault.Key(at, name), "there is no node %q at the beginning", name)
			case cluster != "" && cluster != node.Cluster:
				faults.Add(fault.Key(at, name), "is of cluster %s, and others of cluster %s; a gang is in one", node.Cluster, cluster)
			case pods < 1:
				faults.Add(fault.Key(at, name), "%d pods: want 1 or more", pods)
			default:
				cluster, sum = node.Cluster, sum+pods
				places = append(places, workload.Placement{PodSet: set.Name, Node: name, Pods: pods})
			}
		}
		if _, given := g.Places[set.Name]; sum != set.Count && len(faults) == wrong && (given || !misspelt) {
			faults.Add(at, "places %d pods; want the %d of the pod set", sum, set.Count)
		}
	}
	return places, cluster, faults.Err()
}
