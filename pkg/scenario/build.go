package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// defaultCluster is where nodes are that name no cluster.
const defaultCluster = "cluster"

// podSlots is how many pods a node takes that does not say.
const podSlots = 110

// mostNodes keeps a typing error from filling the memory.
const mostNodes = 20_000

// fault is an error at a place in the file.
func fault(path, format string, args ...any) error {
	return fmt.Errorf("%s: %w", path, fmt.Errorf(format, args...))
}

// list turns quantities into exact amounts.
func (a Amounts) list(path string) (resource.List, error) {
	amounts := resource.List{}
	names := make([]resource.Name, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		quantity, err := apiresource.ParseQuantity(string(a[name]))
		if err != nil {
			return nil, fault(path+"."+string(name), `%q is no amount; want a number, with a suffix if need be, such as "500m", 4 or "16Gi"`, string(a[name]))
		}
		exact, err := kube.Amounts(corev1.ResourceList{corev1.ResourceName(name): quantity})
		if err != nil {
			return nil, fault(path, "%w", err)
		}
		amounts[name] = exact[name]
	}
	return amounts, nil
}

// number is the place of a node's number in the pattern of a group.
var number = regexp.MustCompile(`\{(0+)\}`)

// nodes returns the nodes of the group.
func (g *NodeGroup) nodes(path string) ([]capacity.Node, error) {
	count := 1
	if g.Count != nil {
		count = *g.Count
	}
	if count < 0 || count > mostNodes {
		return nil, fault(path+".count", "%d: want 0 to %d", count, mostNodes)
	}
	at := number.FindStringSubmatchIndex(g.Name)
	if at == nil && (g.Name == "" || strings.ContainsAny(g.Name, "{}") || count > 1) {
		return nil, fault(path+".name", "%q for %d nodes: want the place of the number as zeros in braces, such as gpu-{00}", g.Name, count)
	}
	if len(g.Allocatable) == 0 {
		return nil, fault(path+".allocatable", "is missing; want what pods may use, such as {cpu: 96, memory: 512Gi, nvidia.com/gpu: 8}")
	}
	allocatable, err := g.Allocatable.list(path + ".allocatable")
	if err != nil {
		return nil, err
	}
	if _, said := allocatable[resource.Pods]; !said {
		allocatable[resource.Pods] = podSlots
	}
	unmanaged, err := g.Unmanaged.list(path + ".unmanaged")
	if err != nil {
		return nil, err
	}
	for i, taint := range g.Taints {
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, taint.Effect) {
			return nil, fault(fmt.Sprintf("%s.taints[%d].effect", path, i), "%q: want NoSchedule, PreferNoSchedule or NoExecute", taint.Effect)
		}
	}
	nodes := make([]capacity.Node, count)
	for i := range nodes {
		name := g.Name
		if at != nil {
			name = fmt.Sprintf("%s%0*d%s", g.Name[:at[0]], at[3]-at[2], i, g.Name[at[1]:])
		}
		labels := map[string]string{"kubernetes.io/hostname": name}
		for key, value := range g.Labels {
			labels[key] = value
		}
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
// queue fills in.
func (f *File) workload(path string, g *Gang, queues []book.Queue) (workload.Workload, error) {
	w := workload.Workload{Queue: g.Queue, Namespace: g.Namespace, Name: g.Name, Kind: ray.RayCluster}
	if len(g.Manifest) > 0 {
		object, err := ray.Read(g.Manifest)
		if err != nil {
			return w, fault(path+".manifest", "%w", err)
		}
		w.Kind, w.PodSets, w.Life = object.Kind, object.PodSets, object.Life
		if w.Name == "" {
			w.Name = object.Name
		}
		if w.Namespace == "" {
			w.Namespace = object.Namespace
		}
	}
	for i := range g.Pods {
		set, err := g.Pods[i].podSet(fmt.Sprintf("%s.pods[%d]", path, i))
		if err != nil {
			return w, err
		}
		w.PodSets = append(w.PodSets, set)
	}
	switch {
	case w.Name == "":
		return w, fault(path+".name", "is missing; want a name by which the steps can speak of the workload")
	case (len(g.Manifest) > 0) == (len(g.Pods) > 0):
		return w, fault(path, "%q: want either pods or a manifest", w.Name)
	}
	if w.Queue == "" {
		if len(queues) != 1 {
			var names []string
			for _, q := range queues {
				names = append(names, q.Name)
			}
			return w, fault(path+".queue", "is missing; want one of %s", strings.Join(names, ", "))
		}
		w.Queue = queues[0].Name
	}
	switch {
	case g.Priority != nil && g.PriorityClass != "":
		return w, fault(path, "%q has both priority and priorityClass; want one of them", w.Name)
	case g.Priority != nil:
		w.Priority = *g.Priority
	}
	declared, err := g.RunTime.duration(path + ".runTime")
	if err != nil {
		return w, err
	}
	if declared > 0 {
		w.Life.RunTime = workload.Duration(declared)
	}
	w.ID, w.Digest = workload.ID(w.Name), w.Name
	return w, nil
}

func (s *PodSet) podSet(path string) (workload.PodSet, error) {
	count := 1
	if s.Count != nil {
		count = *s.Count
	}
	switch {
	case s.Name == "":
		return workload.PodSet{}, fault(path+".name", "is missing; want a name such as workers")
	case count < 1 || count > ray.MaxPods:
		return workload.PodSet{}, fault(path+".count", "%d: want 1 to %d", count, ray.MaxPods)
	}
	requests, err := s.Requests.list(path + ".requests")
	if err != nil {
		return workload.PodSet{}, err
	}
	requests[resource.Pods] = 1
	return workload.PodSet{Name: s.Name, Role: workload.RoleWorker, Count: count, Template: workload.Template{
		Requests: requests, NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations,
	}}, nil
}

// placements are where the pods of a running gang are said to be.
func (g *Gang) placements(path string, w *workload.Workload, known map[string]capacity.Node) ([]workload.Placement, string, error) {
	var places []workload.Placement
	cluster := ""
	for _, set := range w.PodSets {
		var names []string
		sum := 0
		for name := range g.Places[set.Name] {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			node, there := known[name]
			switch pods := g.Places[set.Name][name]; {
			case !there:
				return nil, "", fault(path+".places."+set.Name, "there is no node %q", name)
			case cluster != "" && cluster != node.Cluster:
				return nil, "", fault(path+".places", "nodes of the clusters %s and %s; a gang is in one", cluster, node.Cluster)
			case pods < 1:
				return nil, "", fault(path+".places."+set.Name+"."+name, "%d pods: want 1 or more", pods)
			default:
				cluster, sum = node.Cluster, sum+pods
				places = append(places, workload.Placement{PodSet: set.Name, Node: name, Pods: pods})
			}
		}
		if sum != set.Count {
			return nil, "", fault(path+".places."+set.Name, "places %d pods; the pod set has %d", sum, set.Count)
		}
	}
	return places, cluster, nil
}
