package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/apiserver"
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
	// stopListWithin bounds one of the lists of what needs the permission.
	stopListWithin = 20 * time.Second
	// stopLeastAtOnce is how many requests a slow API server still gets at once: when it answers
	// slowly, few would not be done in time.
	stopLeastAtOnce = firstAtOnce
)

// Permission is the permission of a cluster in its API server. Its writes pass without the
// Lease: each process obeys the permission.
type Permission struct {
	client          *Client
	metadata        metadata.Interface
	namespace, name string // of the Lease
}

// ConnectPermission returns the permission that is kept with a Lease.
func ConnectPermission(kubeconfig, cluster, namespace, name string) (*Permission, error) {
	limiter := newLimiter(prometheus.NewRegistry())
	limiter.least = stopLeastAtOnce
	client, err := connect(kubeconfig, cluster, func(next http.RoundTripper) http.RoundTripper { return next }, limiter)
	if err != nil {
		return nil, err
	}
	config, err := apiserver.Config(kubeconfig, "muster-dispatcher")
	if err != nil {
		return nil, err
	}
	listing, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for metadata at %s: %w", config.Host, err)
	}
	return &Permission{client, listing, namespace, name}, nil
}

// Permission implements permission.Cluster.
func (p *Permission) Permission(ctx context.Context) (permission.Record, error) {
	lease, err := p.client.leases.Leases(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return permission.Record{Missing: true}, nil
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

// Permitted implements permission.Cluster. It lists metadata only, all kinds at once. A kind that
// the cluster does not know has no objects.
func (p *Permission) Permitted(ctx context.Context) ([]permission.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, stopListWithin)
	defer cancel()
	kinds := []string{permission.Pod, workload.KindRayJob, workload.KindRayService, workload.KindRayCluster}
	held, failed := make([][]permission.Held, len(kinds)), make([]error, len(kinds))
	var listing sync.WaitGroup
	for i, kind := range kinds {
		listing.Go(func() { held[i], failed[i] = p.permitted(ctx, kind) })
	}
	listing.Wait()
	return slices.Concat(held...), errors.Join(failed...)
}

// permitted lists what of a kind needs a permission. Pods that have ended hold nothing.
func (p *Permission) permitted(ctx context.Context, kind string) ([]permission.Held, error) {
	resource, options := resources[kind], metav1.ListOptions{LabelSelector: p.client.ours() + "," + kube.PermissionLabel + "=" + kube.PermissionNeeded}
	if kind == permission.Pod {
		resource, options.FieldSelector = schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "status.phase!=Succeeded,status.phase!=Failed"
	}
	list, err := p.metadata.Resource(resource).List(ctx, options)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list each %s that needs a permission: %w", kind, err)
	}
	all := make([]permission.Held, len(list.Items))
	for i := range list.Items {
		all[i] = heldOf(kind, &list.Items[i])
	}
	return all, nil
}

func heldOf(kind string, o metav1.Object) permission.Held {
	attempt, _ := strconv.Atoi(o.GetLabels()[kube.AttemptLabel]) // 0 when it is not ours
	grace := o.GetDeletionGracePeriodSeconds()
	return permission.Held{
		Slow: kind == permission.Pod && grace != nil && *grace > int64(stopGrace/time.Second),
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
		Workload: workload.ID(o.GetLabels()[kube.WorkloadLabel]), Attempt: attempt, Deleting: o.GetDeletionTimestamp() != nil,
	}
}

// Stop implements permission.Cluster. It deletes no pod by force: that is the reaper's, by the
// rules of its queue.
func (p *Permission) Stop(ctx context.Context, h permission.Held) error {
	if h.Kind != permission.Pod {
		return p.client.Delete(ctx, Object{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name, UID: h.UID})
	}
	uid, grace := types.UID(h.UID), int64(stopGrace/time.Second)
	err := p.client.core.CoreV1().Pods(h.Namespace).Delete(ctx, h.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: &grace})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", h.Namespace, h.Name, err)
	}
	return nil
}
