package autoscaler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Labels of the nodes of pools.
const (
	PoolLabel = "devcluster.muster.dev/pool"
	// RequestLabel has the UID of the request that a node came for.
	RequestLabel = "devcluster.muster.dev/provisioned-for"
)

// scaler is one autoscaler. It remembers times, and nodes that are ordered, which do not come
// after a restart; the rest is in the API server.
type scaler struct {
	client   kubernetes.Interface
	requests dynamic.Interface
	now      func() time.Time
	began    map[types.UID]time.Time // when the nodes of a request began to come
	ordered  map[types.UID]order     // nodes that come after their request is Provisioned
	pending  map[string]time.Time    // since when pods are seen pending that a pool has nodes for
	idle     map[string]time.Time    // since when nodes are seen unused
}

// order is how many nodes of which pools come when.
type order struct {
	of  map[string]int
	due time.Time
}

func newScaler(client kubernetes.Interface, requests dynamic.Interface) *scaler {
	return &scaler{
		client: client, requests: requests, now: time.Now, began: map[types.UID]time.Time{}, ordered: map[types.UID]order{},
		pending: map[string]time.Time{}, idle: map[string]time.Time{},
	}
}

// step does what is due and reports whether time alone may make more due.
func (s *scaler) step(ctx context.Context, stored *corev1.ConfigMap, objects []any) (waits bool, err error) {
	pools, err := poolsOf(stored)
	if err != nil {
		return false, err
	}
	list, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: PoolLabel})
	if err != nil {
		return false, fmt.Errorf("listing nodes of pools: %w", err)
	}
	look := &look{scaler: s, pools: map[string]*pool{}, live: map[types.UID]*request{}}
	for _, p := range pools {
		look.pools[p.Name] = newPool(p, list.Items)
		look.order = append(look.order, p.Name)
	}
	var faults []error
	all := inOrder(objects, &faults)
	for _, r := range all {
		look.live[r.UID] = r
	}
	for _, r := range all {
		faults = append(faults, look.request(ctx, r))
	}
	faults = append(faults, look.addPending(ctx), look.keepMinimum(ctx), look.removeIdle(ctx))
	gone := func(uid types.UID) bool { return look.live[uid] == nil }
	maps.DeleteFunc(s.began, func(uid types.UID, _ time.Time) bool { return gone(uid) })
	maps.DeleteFunc(s.ordered, func(uid types.UID, _ order) bool { return gone(uid) })
	return look.waits, errors.Join(faults...)
}

// inOrder returns the requests, the oldest first.
func inOrder(objects []any, faults *[]error) []*request {
	var all []*request
	for _, object := range objects {
		r, err := requestOf(object.(*unstructured.Unstructured))
		if err != nil {
			*faults = append(*faults, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *request) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return all
}

// pool is a Pool with its nodes.
type pool struct {
	Pool
	template *corev1.Node
	nodes    []corev1.Node
	coming   int // nodes that are on their way
}

func newPool(of Pool, all []corev1.Node) *pool {
	one := 1
	of.Template.Count = &one
	p := &pool{Pool: of, template: of.Template.Nodes(nil)[0]}
	for i := range all {
		if all[i].Labels[PoolLabel] == of.Name {
			p.nodes = append(p.nodes, all[i])
		}
	}
	return p
}

// room is how many nodes the pool may still get.
func (p *pool) room() int {
	room := p.Max - len(p.nodes) - p.coming
	if p.Stock >= 0 {
		room = min(room, p.Stock-len(p.nodes)-p.coming)
	}
	return max(room, 0)
}
