package stack

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// AddNodes adds nodes to the stack's pool, named after it, with the given
// allocatable resources, such as "nvidia.com/gpu=8".
func (s *Stack) AddNodes(ctx context.Context, group string, count int, resources ...string) error {
	return addNodes(ctx, s.Kube, s.Pool, s.Pool, group, count, resources)
}

// addNodes adds nodes of a pool to a cluster, which are named after the cluster. Names that are
// taken are left out. It does what the command `devcluster node add` does, without a process
// that takes half a second.
func addNodes(ctx context.Context, kube kubernetes.Interface, cluster, pool, group string, count int, resources []string) error {
	allocatable := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	for _, text := range resources {
		name, amount, _ := strings.Cut(text, "=")
		quantity, err := resource.ParseQuantity(amount)
		if err != nil {
			return fmt.Errorf("add nodes of group %s with %q: %w", group, text, err)
		}
		allocatable[corev1.ResourceName(name)] = quantity
	}
	nodes := kube.CoreV1().Nodes()
	present, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: poolLabel + "=" + pool})
	if err != nil {
		return fmt.Errorf("list the nodes of pool %s: %w", pool, err)
	}
	taken := map[string]bool{}
	for _, node := range present.Items {
		taken[node.Name] = true
	}
	for n, added := 0, 0; added < count; n++ {
		name := fmt.Sprintf("%s-%s-%d", cluster, group, n)
		if taken[name] {
			continue
		}
		node := simulated(name, cluster+"-"+group, allocatable)
		node.Labels[poolLabel] = pool
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", name, err)
		}
		added++
	}
	return nil
}

// simulated is a node of a group as the dev cluster makes it, whose kubelet the dev cluster
// plays. The shape repeats that of deploy/devcluster/internal/fleet, because no module of the
// workspace may import the dev cluster's (decision 6). TestNodesComeGoAndAreCordoned of test/e2e
// compares the two.
func simulated(name, group string, allocatable corev1.ResourceList) *corev1.Node {
	now := metav1.Now().Rfc3339Copy()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"devcluster.muster.dev/kubelet": "running",
			"devcluster.muster.dev/group":   group,
			corev1.LabelHostname:            name,
			corev1.LabelOSStable:            "linux",
			corev1.LabelArchStable:          "amd64",
			"beta.kubernetes.io/os":         "linux",
			"beta.kubernetes.io/arch":       "amd64",
		}},
		Status: corev1.NodeStatus{
			Phase:       corev1.NodeRunning,
			Allocatable: maps.Clone(allocatable),
			Capacity:    maps.Clone(allocatable),
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
				condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, "RouteCreated", "RouteController created a route"),
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.36.3", OSImage: "kwok",
			},
		},
	}
}

// NodeName returns the name of a node that AddNodes made.
func (s *Stack) NodeName(group string, i int) string {
	return fmt.Sprintf("%s-%s-%d", s.Pool, group, i)
}

// Node runs a node command of the dev cluster, such as "break", NAME.
func (s *Stack) Node(ctx context.Context, command ...string) error {
	return s.options.Cluster.Node(ctx, command...)
}

// NodePool runs a command on a node pool of the dev cluster, such as "add" or "set", that is
// named after the stack's pool. Nodes that the pool gets are the stack's.
func (s *Stack) NodePool(ctx context.Context, command, group string, flags ...string) error {
	name := s.Pool + "-" + group
	arguments := append([]string{command, name}, flags...)
	if command == "add" {
		arguments = append(arguments, "--pattern", name+"-{0}", "--label", poolLabel+"="+s.Pool)
	}
	return s.options.Cluster.Pool(ctx, arguments...)
}

// RevokeNodes takes the nodes away that came for a ProvisioningRequest of the stack.
func (s *Stack) RevokeNodes(ctx context.Context, request string) error {
	return s.options.Cluster.Pool(ctx, "revoke", s.Namespace+"/"+request)
}

// poolLabel marks the nodes of one stack.
const poolLabel = "test.muster.dev/pool"
