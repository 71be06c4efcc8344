package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

const (
	taintTimeout = 15 * time.Second
	taintPoll    = 50 * time.Millisecond
)

// Break kills the kubelets of nodes: heartbeats stop, the nodes become NotReady,
// and the pods on them neither start nor end. It leaves a node as the node
// lifecycle controller would leave it after its grace period, without the wait:
// conditions Unknown, pods not Ready; and it returns when that controller has
// added its taint.
func Break(ctx context.Context, client kubernetes.Interface, names []string) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		stop := func(node *corev1.Node) {
			metav1.SetMetaDataLabel(&node.ObjectMeta, fleet.ManagedLabel, fleet.ManagedStopped)
		}
		if err := change(ctx, client, name, stop); err != nil {
			return err
		}
		if err := patchConditions(ctx, client, name, deadConditions()); err != nil {
			return err
		}
		if err := markPodsNotReady(ctx, client, name); err != nil {
			return err
		}
		return waitTaint(ctx, client, name, true)
	})
}

// Repair undoes Break.
func Repair(ctx context.Context, client kubernetes.Interface, names []string) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		if err := patchConditions(ctx, client, name, fleet.ReadyConditions()); err != nil {
			return err
		}
		start := func(node *corev1.Node) {
			metav1.SetMetaDataLabel(&node.ObjectMeta, fleet.ManagedLabel, fleet.ManagedRunning)
		}
		if err := change(ctx, client, name, start); err != nil {
			return err
		}
		return waitTaint(ctx, client, name, false)
	})
}

// deadConditions are those of a node whose kubelet does not report.
func deadConditions() []corev1.NodeCondition {
	conditions := fleet.ReadyConditions()
	for i := range conditions {
		conditions[i].Status = corev1.ConditionUnknown
		conditions[i].Reason = "NodeStatusUnknown"
		conditions[i].Message = "Kubelet stopped posting node status."
	}
	return conditions
}

func patchConditions(ctx context.Context, client kubernetes.Interface, name string, conditions []corev1.NodeCondition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return fmt.Errorf("encoding conditions: %w", err)
	}
	_, err = client.CoreV1().Nodes().PatchStatus(ctx, name, patch)
	return err
}

// markPodsNotReady does what the node lifecycle controller does when it finds a
// node dead by itself.
func markPodsNotReady(ctx context.Context, client kubernetes.Interface, node string) error {
	pods, err := podsOn(ctx, client, node)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse,
			Reason: "NodeNotReady", LastTransitionTime: metav1.Now(),
		}}}})
		if err != nil {
			return fmt.Errorf("encoding conditions: %w", err)
		}
		_, err = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("marking pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// waitTaint waits until the node lifecycle controller has added or removed its
// taint.
func waitTaint(ctx context.Context, client kubernetes.Interface, name string, want bool) error {
	err := wait.PollUntilContextTimeout(ctx, taintPoll, taintTimeout, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return hasTaint(node, corev1.TaintNodeUnreachable) == want, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the taint %s: %w", corev1.TaintNodeUnreachable, err)
	}
	return nil
}

func hasTaint(node *corev1.Node, key string) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}
