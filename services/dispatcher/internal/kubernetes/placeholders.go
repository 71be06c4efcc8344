package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// PlaceholderScheduler is the schedulerName of placeholder pods. No scheduler has this name, so
// nothing binds them.
const PlaceholderScheduler = "muster.dev/placeholder"

// Placeholder is a pod that shows a gang to an autoscaler.
type Placeholder struct {
	Namespace, Name, UID string
	Workload             workload.ID
	Request              string // the name of the request that it is of
	Node                 string // where a scheduler has bound it, which none should
	Shown                bool   // autoscalers see it as pending
	Deleting             bool
	// Forged: no dispatcher made it so. Another scheduler serves it, or its id is that of no
	// workload. Such a pod shows no gang.
	Forged bool
}

// RequestKey is the annotation with the request for nodes that a PodTemplate or a placeholder pod
// is of.
const RequestKey = "muster.dev/provisioning-request"

// Placeholders lists the placeholder pods of this cluster's dispatchers, uncached: of a workload
// and its namespace, or of all when these are empty.
func (c *Client) Placeholders(ctx context.Context, namespace string, of workload.ID) ([]Placeholder, error) {
	selector := kube.PlaceholderClusterLabel + "=" + c.cluster + "," + kube.PlaceholderLabel
	if of != "" {
		selector += "=" + string(of)
	}
	list, err := c.core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list placeholder pods of workload %q: %w", of, err)
	}
	found := make([]Placeholder, len(list.Items))
	for i := range list.Items {
		found[i] = placeholderOf(&list.Items[i])
	}
	return found, nil
}

// placeholderOf reads a pod that anyone may have labelled.
func placeholderOf(p *corev1.Pod) Placeholder {
	id := p.Labels[kube.PlaceholderLabel]
	return Placeholder{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Workload: workload.ID(id),
		Request: p.Annotations[RequestKey], Node: p.Spec.NodeName, Shown: isUnschedulable(p), Deleting: p.DeletionTimestamp != nil,
		Forged: p.Spec.SchedulerName != PlaceholderScheduler || uuid.Validate(id) != nil,
	}
}

// isUnschedulable reports whether autoscalers see a pod as pending.
func isUnschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// ShowPlaceholder has autoscalers see a pod as pending, as a scheduler would that finds no node
// for it: Cluster Autoscaler and Karpenter read this condition, and not who wrote it.
func (c *Client) ShowPlaceholder(ctx context.Context, p Placeholder) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID}, // of this very pod
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": corev1.PodScheduled, "status": corev1.ConditionFalse, "reason": corev1.PodReasonUnschedulable,
			"message": "a gang that waits for nodes shows itself by this pod, which never runs", "lastTransitionTime": metav1.NewTime(time.Now()),
		}}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition of pod %s: %w", p.Name, err)
	}
	_, err = c.core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("show placeholder pod %s/%s as pending: %w", p.Namespace, p.Name, err)
	}
	return nil
}
