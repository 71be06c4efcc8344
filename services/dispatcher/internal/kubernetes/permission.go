package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/permission"
)

const (
	// permissionKey is the annotation of the dispatcher's Lease that has the permission of the
	// cluster. Lease and permission have one object, because the rights name it.
	permissionKey = "muster.dev/permission"
	// permissionTries bounds the writes of a permission beside the renewals of the Lease.
	permissionTries = 8
	// stopGrace is the time that pods get to end whose permission has run out. It is part
	// of the margin that queue-manager waits.
	stopGrace = 10 * time.Second
	// stopOverdue is how long after its grace a pod is deleted by force.
	stopOverdue = 20 * time.Second
)

// Permission is the permission of a cluster in its API server. Its writes pass without the
// Lease: each process obeys the permission.
type Permission struct {
	client          *Client
	namespace, name string // of the Lease
}

// ConnectPermission returns the permission that is kept with a Lease.
func ConnectPermission(kubeconfig, cluster, namespace, name string) (*Permission, error) {
	client, err := connect(kubeconfig, cluster, func(next http.RoundTripper) http.RoundTripper { return next }, newLimiter(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	return &Permission{client, namespace, name}, nil
}

// Permission implements permission.Cluster.
func (p *Permission) Permission(ctx context.Context) (permission.Record, error) {
	lease, err := p.client.leases.Leases(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return permission.Record{}, nil
	case err != nil:
		return permission.Record{}, fmt.Errorf("read the permission in lease %s/%s: %w", p.namespace, p.name, err)
	}
	return recordOf(lease.Annotations[permissionKey]), nil
}

// recordOf reads a permission. One that cannot be read has ended.
func recordOf(text string) permission.Record {
	var record permission.Record
	if text != "" && json.Unmarshal([]byte(text), &record) != nil {
		record = permission.Record{}
	}
	record.Text = text
	return record
}

// SetPermission implements permission.Cluster. The Lease is renewed at the same time, so
// a conflict alone does not say that the permission has changed.
func (p *Permission) SetPermission(ctx context.Context, instead string, r permission.Record) error {
	encoded, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the permission of cluster %s: %w", p.client.cluster, err)
	}
	leases := p.client.leases.Leases(p.namespace)
	for range permissionTries {
		lease, getErr := leases.Get(ctx, p.name, metav1.GetOptions{})
		if getErr != nil {
			return fmt.Errorf("read the permission in lease %s/%s: %w", p.namespace, p.name, getErr)
		}
		if lease.Annotations[permissionKey] != instead {
			return permission.ErrChanged
		}
		if instead == string(encoded) {
			return nil
		}
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[permissionKey] = string(encoded)
		if _, err = leases.Update(ctx, lease, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write the permission into lease %s/%s: %w", p.namespace, p.name, err)
	}
	return nil
}

// Permitted implements permission.Cluster.
func (p *Permission) Permitted(ctx context.Context) ([]permission.Held, error) {
	options := metav1.ListOptions{LabelSelector: p.client.ours() + "," + kube.PermissionLabel + "=" + kube.PermissionNeeded}
	var all []permission.Held
	for _, kind := range []string{workload.KindRayJob, workload.KindRayService, workload.KindRayCluster} {
		list, err := p.client.objects.Resource(resources[kind]).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list each %s that needs a permission: %w", kind, err)
		}
		for i := range list.Items {
			all = append(all, heldOf(kind, &list.Items[i]))
		}
	}
	pods, err := p.client.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list the pods that need a permission: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if podOf(pod).Holds() {
			held := heldOf(podKind, pod)
			held.Overdue = held.Deleting && time.Since(pod.DeletionTimestamp.Time) > stopOverdue
			all = append(all, held)
		}
	}
	return all, nil
}

const podKind = "Pod"

func heldOf(kind string, o metav1.Object) permission.Held {
	attempt, _ := strconv.Atoi(o.GetLabels()[kube.AttemptLabel]) // 0 when it is not ours
	return permission.Held{
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
		Workload: workload.ID(o.GetLabels()[kube.WorkloadLabel]), Attempt: attempt, Deleting: o.GetDeletionTimestamp() != nil,
	}
}

// Stop implements permission.Cluster.
func (p *Permission) Stop(ctx context.Context, h permission.Held) error {
	if h.Kind != podKind {
		return p.client.Delete(ctx, Object{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name, UID: h.UID})
	}
	uid, grace := types.UID(h.UID), int64(stopGrace/time.Second)
	if h.Overdue {
		grace = 0
	}
	err := p.client.core.CoreV1().Pods(h.Namespace).Delete(ctx, h.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: &grace})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", h.Namespace, h.Name, err)
	}
	return nil
}
