package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/deploy/devcluster/internal/nodes"
)

// keepMinimum adds the nodes that pools have without any request.
func (l *look) keepMinimum(ctx context.Context) error {
	var faults []error
	for _, name := range l.order {
		p := l.pools[name]
		if missing := p.Min - len(p.nodes); missing > 0 {
			faults = append(faults, l.add(ctx, p, missing, nil))
		}
	}
	return errors.Join(faults...)
}

// removeIdle removes nodes that nothing has used for the idle time of their pool.
func (l *look) removeIdle(ctx context.Context) error {
	pods, used := map[string]bool{}, false
	var faults []error
	for _, name := range l.order {
		p := l.pools[name]
		if p.Idle.Duration == 0 || len(p.nodes) <= p.Min {
			continue
		}
		if !used {
			all, err := l.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
			if err != nil {
				return fmt.Errorf("listing pods: %w", err)
			}
			for i := range all.Items {
				pods[all.Items[i].Spec.NodeName] = true
			}
			used = true
		}
		left := len(p.nodes)
		for i := range p.nodes {
			node := &p.nodes[i]
			if pods[node.Name] || l.reserved(node) {
				delete(l.idle, node.Name)
				continue
			}
			l.waits = true
			if _, known := l.idle[node.Name]; !known {
				l.idle[node.Name] = l.now()
			}
			if left > p.Min && l.now().Sub(l.idle[node.Name]) >= p.Idle.Duration {
				delete(l.idle, node.Name)
				left--
				faults = append(faults, nodes.Remove(ctx, l.client, []string{node.Name}, false))
			}
		}
	}
	return errors.Join(faults...)
}

// reserved reports whether a node is kept for a request.
func (l *look) reserved(node *corev1.Node) bool {
	r := l.live[types.UID(node.Labels[RequestLabel])]
	return r != nil && !r.is(Failed) && !r.is(BookingExpired) && !r.is(CapacityRevoked)
}

// Revoke removes the nodes of a request and sets its condition CapacityRevoked.
func Revoke(ctx context.Context, client kubernetes.Interface, requests dynamic.Interface, namespace, name string) ([]string, error) {
	object, err := requests.Resource(Requests).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading request %s/%s: %w", namespace, name, err)
	}
	r, err := requestOf(object)
	if err != nil {
		return nil, err
	}
	r.set(CapacityRevoked, true, "CapacityRevoked", "the nodes were removed")
	written, err := r.written()
	if err != nil {
		return nil, err
	}
	if _, err := requests.Resource(Requests).Namespace(namespace).UpdateStatus(ctx, written, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("writing the status of request %s/%s: %w", namespace, name, err)
	}
	names, err := nodes.Select(ctx, client, nodes.Selection{Selector: RequestLabel + "=" + string(r.UID)})
	if errors.Is(err, nodes.ErrNoneSelected) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	if err := nodes.Remove(ctx, client, names, false); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	return names, nil
}
