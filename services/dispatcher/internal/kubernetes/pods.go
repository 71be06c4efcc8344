package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// DeletePod removes exactly this pod: by force at once and whatever its kubelet
// says, or with the grace that the pod asks for.
func (c *Client) DeletePod(ctx context.Context, pod gang.Pod, force bool) error {
	uid := types.UID(pod.UID)
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if force {
		now := int64(0)
		options.GracePeriodSeconds = &now
	}
	err := c.core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Pin sends a pod to a node and lifts the placement gate, in one write. A pod
// that is gone meanwhile is no error: its replacement will be seen. A conflict
// is one, for it may as well be with another writer of the same pod.
func (c *Client) Pin(ctx context.Context, pin gang.Pin) error {
	var gates []map[string]string // null removes the list
	for _, name := range pin.Pod.OtherGates {
		gates = append(gates, map[string]string{"name": name})
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pin.Pod.UID}, // of this very pod
		"spec": map[string]any{
			"nodeSelector":    map[string]string{kube.HostnameLabel: pin.Hostname},
			"schedulingGates": gates,
		},
	})
	if err != nil {
		return fmt.Errorf("encode patch of pod %s: %w", pin.Pod.Name, err)
	}
	_, err = c.core.CoreV1().Pods(pin.Pod.Namespace).Patch(ctx, pin.Pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("pin pod %s/%s to node %s: %w", pin.Pod.Namespace, pin.Pod.Name, pin.Hostname, err)
	}
	return nil
}

// Left is what is there of a workload.
type Left struct {
	// Pods have not ended; Gated of them are still at the placement gate, which only
	// Muster lifts, and take no room.
	Pods, Gated int
	// Clusters are RayClusters, which could make more pods.
	Clusters int
	// Earliest is the earliest attempt that one of them is of; 0 for none.
	Earliest int
}

// note counts one of an attempt; 0 is not known.
func (l *Left) note(attempt int) {
	if attempt > 0 && (l.Earliest == 0 || attempt < l.Earliest) {
		l.Earliest = attempt
	}
}

// Nothing reports whether nothing holds capacity or may come to hold any.
func (l Left) Nothing() bool { return l == Left{} }

// Remaining reads, uncached, what is left of the workload.
func (c *Client) Remaining(ctx context.Context, id workload.ID, namespace string) (Left, error) {
	options := metav1.ListOptions{LabelSelector: c.ours() + "," + kube.WorkloadLabel + "=" + string(id)}
	podList, err := c.core.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return Left{}, fmt.Errorf("list pods of workload %s: %w", id, err)
	}
	var left Left
	for i := range podList.Items {
		pod := podOf(&podList.Items[i])
		if !pod.Holds() {
			continue
		}
		left.Pods++
		left.note(pod.Attempt)
		if pod.Gated && pod.Node == "" {
			left.Gated++
		}
	}
	clusterList, err := c.objects.Resource(resources[workload.KindRayCluster]).Namespace(namespace).List(ctx, options)
	if err != nil {
		return Left{}, fmt.Errorf("list RayClusters of workload %s: %w", id, err)
	}
	left.Clusters = len(clusterList.Items)
	for i := range clusterList.Items {
		attempt, _ := strconv.Atoi(clusterList.Items[i].GetLabels()[kube.AttemptLabel]) // 0 when it is not ours
		left.note(attempt)
	}
	return left, nil
}

// OrphanedPods reads, uncached, which of the given pods are still there and have
// no object that makes such pods: none controls them, or a RayCluster that is gone.
func (c *Client) OrphanedPods(ctx context.Context, id workload.ID, pods []gang.Pod) ([]gang.Pod, error) {
	list, err := c.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: c.ours() + "," + kube.WorkloadLabel + "=" + string(id)})
	if err != nil {
		return nil, fmt.Errorf("list pods of workload %s: %w", id, err)
	}
	var orphans []gang.Pod
	for i := range list.Items {
		pod := podOf(&list.Items[i])
		if !slices.ContainsFunc(pods, func(p gang.Pod) bool { return p.UID == pod.UID && p.Attempt == pod.Attempt }) || pod.Deleting {
			continue
		}
		if owner := pod.Controller; owner.Kind != "" {
			if owner.Kind != workload.KindRayCluster {
				continue // another controller's, which would make it again
			}
			object, err := c.Get(ctx, owner.Kind, pod.Namespace, owner.Name)
			if err != nil {
				return nil, err
			}
			if object != nil && object.UID == owner.UID {
				continue
			}
		}
		orphans = append(orphans, pod)
	}
	return orphans, nil
}

// replicaLabel names, on pods of replicas of several hosts, the replica.
const replicaLabel = "ray.io/worker-group-replica-name"

func podOf(p *corev1.Pod) gang.Pod {
	attempt, _ := strconv.Atoi(p.Labels[kube.AttemptLabel]) // 0 when it is not ours
	pod := gang.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Cluster: p.Labels[kube.ClusterLabel],
		Workload: workload.ID(p.Labels[kube.WorkloadLabel]), Attempt: attempt, PodSet: p.Labels[kube.PodSetLabel], Replica: p.Labels[replicaLabel],
		Node: p.Spec.NodeName, Deleting: p.DeletionTimestamp != nil, Cleanup: p.Labels["ray.io/node-type"] == "redis-cleanup",
		GoneBy: goneBy(p), Controller: controllerOf(p), Placeholder: p.Labels[kube.PlaceholderLabel] != "" && p.Spec.NodeName == "" && p.Spec.SchedulerName == PlaceholderScheduler,
		Ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed, LastCheckpoint: reportedTime(p, kube.LastCheckpointKey),
	}
	for _, gate := range p.Spec.SchedulingGates {
		if gate.Name == kube.PlacementGate {
			pod.Gated = true
		} else {
			pod.OtherGates = append(pod.OtherGates, gate.Name)
		}
	}
	if !pod.Gated {
		pod.Hostname = p.Spec.NodeSelector[kube.HostnameLabel]
	}
	return pod
}

// controllerOf names what makes such objects as this one.
func controllerOf(o metav1.Object) gang.Controller {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return gang.Controller{Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)}
	}
	return gang.Controller{}
}

// goneBy is the end of the grace that a deleted pod was given.
func goneBy(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	return p.DeletionTimestamp.Time
}
