package kubelet

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

const (
	renewInterval = fleet.LeaseDuration / 4
	// leaseRate spreads renewals out, so that heartbeats of a large fleet do not
	// disturb what is measured on it.
	leaseRate  = 50
	leaseBurst = 50
)

// leases keeps the lease of every managed node fresh, as kubelets do.
type leases struct {
	client kubernetes.Interface
	due    chan string // Names of nodes that have just come.
	pace   flowcontrol.RateLimiter
}

func newLeases(client kubernetes.Interface) *leases {
	return &leases{
		client: client,
		due:    make(chan string, 1),
		pace:   flowcontrol.NewTokenBucketRateLimiter(leaseRate, leaseBurst),
	}
}

func (l *leases) run(ctx context.Context) {
	factory := informers.NewSharedInformerFactoryWithOptions(l.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = fleet.ManagedLabel + "=" + fleet.ManagedRunning
		}))
	nodes := factory.Core().V1().Nodes()
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			select {
			case l.due <- obj.(*corev1.Node).Name:
			case <-ctx.Done():
			}
		},
	})
	if err != nil {
		klog.ErrorS(err, "Leases of nodes are not kept")
		<-ctx.Done()
		return
	}
	lister := nodes.Lister()
	factory.Start(ctx.Done())
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-l.due:
			if node, err := lister.Get(name); err == nil {
				l.renew(ctx, node)
			}
		case <-tick.C:
			all, err := lister.List(labels.Everything())
			if err != nil {
				klog.ErrorS(err, "Listing nodes")
			}
			for _, node := range all {
				l.renew(ctx, node)
			}
		}
	}
}

func (l *leases) renew(ctx context.Context, node *corev1.Node) {
	if l.pace.Wait(ctx) != nil {
		return
	}
	client := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := client.Get(ctx, node.Name, metav1.GetOptions{})
	now := metav1.NowMicro()
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
				}},
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       &node.Name,
				LeaseDurationSeconds: ptr.To(int32(fleet.LeaseDuration.Seconds())),
				RenewTime:            &now,
			},
		}, metav1.CreateOptions{})
	case err == nil:
		lease.Spec.RenewTime = &now
		_, err = client.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil && ctx.Err() == nil {
		klog.ErrorS(err, "Renewing the lease of a node", "node", node.Name)
	}
}
