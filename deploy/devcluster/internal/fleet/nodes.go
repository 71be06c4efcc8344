package fleet

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultPods is the kubelet's own limit of pods.
var defaultPods = resource.MustParse("110")

const kubeletVersion = "v1.36.3"

// Nodes returns the group's nodes, Ready from the start. Numbers whose names are
// taken are left out, so that nodes can be added to a running cluster. A group
// of one fixed name whose name is taken has none.
func (g Group) Nodes(taken func(name string) bool) []*corev1.Node {
	pattern, err := parsePattern(g.Name)
	if err != nil {
		return nil // Validate has reported it.
	}
	count := g.count()
	nodes := make([]*corev1.Node, 0, count)
	for n := 0; len(nodes) < count; n++ {
		name := pattern.name(n)
		if taken == nil || !taken(name) {
			nodes = append(nodes, g.node(name, pattern.group(), len(nodes)))
		} else if pattern.fixed {
			break
		}
	}
	return nodes
}

func (g Group) node(name, group string, index int) *corev1.Node {
	labels := map[string]string{
		ManagedLabel:              ManagedRunning,
		GroupLabel:                group,
		corev1.LabelHostname:      name,
		corev1.LabelOSStable:      "linux",
		corev1.LabelArchStable:    "amd64",
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": "amd64",
	}
	maps.Copy(labels, g.place(index))
	maps.Copy(labels, g.Labels)

	allocatable := make(corev1.ResourceList, len(g.Allocatable)+1)
	allocatable[corev1.ResourcePods] = defaultPods
	maps.Copy(allocatable, g.Allocatable)
	capacity := maps.Clone(allocatable)
	maps.Copy(capacity, g.Capacity)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: g.Annotations},
		Spec:       corev1.NodeSpec{Taints: g.Taints},
		Status: corev1.NodeStatus{
			Phase:       corev1.NodeRunning,
			Allocatable: allocatable,
			Capacity:    capacity,
			Conditions:  ReadyConditions(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64",
				KubeletVersion: kubeletVersion, OSImage: "kwok",
			},
		},
	}
}

// place returns the labels of the zone and the rack in which the node with the
// given index in its group stands.
func (g Group) place(index int) map[string]string {
	if g.Zones == 0 {
		return nil
	}
	perZone := ceilDiv(g.count(), g.Zones)
	zone := index / perZone
	labels := map[string]string{ZoneLabel: "zone-" + strconv.Itoa(zone)}
	if g.RacksPerZone > 0 {
		rack := index % perZone / ceilDiv(perZone, g.RacksPerZone)
		labels[RackLabel] = labels[ZoneLabel] + "-rack-" + strconv.Itoa(rack)
	}
	return labels
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// ReadyConditions are the conditions of a healthy node.
func ReadyConditions() []corev1.NodeCondition {
	at := now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: at, LastTransitionTime: at,
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "RouteCreated", "RouteController created a route"),
	}
}
