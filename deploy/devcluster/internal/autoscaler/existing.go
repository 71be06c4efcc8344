package autoscaler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// consumes is the annotation by which a pod names the request that it came with.
const consumes = "autoscaling.x-k8s.io/consume-provisioning-request"

// existing is what the nodes that exist have free for requests.
type existing struct{ nodes []spot }

// spot is a node with what is free on it.
type spot struct {
	node *corev1.Node
	left corev1.ResourceList
}

// exists returns what is free, less what requests have reserved. It is read once a look.
func (l *look) exists(ctx context.Context) (*existing, error) {
	if l.free != nil {
		return l.free, nil
	}
	all, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	pods, err := l.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	e := &existing{}
	at := map[string]int{}
	for i := range all.Items {
		if node := &all.Items[i]; ready(node) && !node.Spec.Unschedulable {
			at[node.Name] = len(e.nodes)
			e.nodes = append(e.nodes, spot{node: node, left: node.Status.Allocatable.DeepCopy()})
		}
	}
	consumed := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if name := pod.Annotations[consumes]; name != "" {
			consumed[pod.Namespace+"/"+name]++
		}
		if i, known := at[pod.Spec.NodeName]; known {
			e.nodes[i].allocate(requestsOf(&pod.Spec))
		}
	}
	if err := l.reserve(ctx, e, consumed); err != nil {
		return nil, err
	}
	l.free = e
	return e, nil
}

// reserve allocates places for the requests that are Provisioned and whose pods are not there
// yet.
func (l *look) reserve(ctx context.Context, e *existing, consumed map[string]int) error {
	for _, r := range l.live {
		if !r.is(Provisioned) || r.is(Failed) || r.is(BookingExpired) || r.is(CapacityRevoked) {
			continue
		}
		sets, _, err := l.podSets(ctx, r)
		if err != nil {
			return err
		}
		there := consumed[r.Namespace+"/"+r.Name]
		for _, set := range sets {
			for range set.count {
				if there > 0 {
					there--
					continue
				}
				e.place(set.pod)
			}
		}
	}
	return nil
}

// place allocates a place for a pod on some node; false when there is none.
func (e *existing) place(pod *corev1.PodSpec) bool {
	asked := requestsOf(pod)
	at := slices.IndexFunc(e.nodes, func(s spot) bool { return hasRoom(s.left, asked) && admits(s.node, pod) })
	if at < 0 {
		return false
	}
	e.nodes[at].allocate(asked)
	return true
}

// allocate subtracts the requests of a pod from what is left on the node.
func (s *spot) allocate(asked corev1.ResourceList) {
	for name, amount := range asked {
		left := s.left[name]
		left.Sub(amount)
		s.left[name] = left
	}
}

// lacking returns the pods that have no place on nodes that exist. It allocates the places
// of the others for this look.
func (l *look) lacking(ctx context.Context, sets []podSet) ([]podSet, error) {
	e, err := l.exists(ctx)
	if err != nil {
		return nil, err
	}
	lacking := slices.Clone(sets)
	for i := range lacking {
		for lacking[i].count > 0 && e.place(lacking[i].pod) {
			lacking[i].count--
		}
	}
	return lacking, nil
}

// check answers a request of the class check-capacity: nodes are there, or they are not.
func (l *look) check(ctx context.Context, r *request, sets []podSet, changed bool) error {
	e, err := l.exists(ctx)
	if err != nil {
		return err
	}
	before := e.clone()
	lacking, err := l.lacking(ctx, sets)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(lacking, func(s podSet) bool { return s.count > 0 }) {
		return l.write(ctx, r, r.set(Provisioned, true, "CapacityIsFound", "Capacity is found in the cluster"))
	}
	l.free = before // a part of a request allocates nothing
	if r.Spec.Parameters["noRetry"] == "true" {
		r.set(Failed, true, "CapacityIsNotFound", "CA could not find requested capacity")
		return l.write(ctx, r, true)
	}
	l.waits = true
	return l.write(ctx, r, r.set(Provisioned, false, "CapacityIsNotFound", "Capacity is not found, CA will try to find it later.") || changed)
}

// complete provides the nodes that a request needs beside those that exist.
func (l *look) complete(ctx context.Context, r *request, of []*pool, sets []podSet, changed bool) error {
	e, err := l.exists(ctx)
	if err != nil {
		return err
	}
	before := e.clone()
	lacking, err := l.lacking(ctx, sets)
	if err == nil {
		err = l.provide(ctx, r, of, lacking, changed)
	}
	if !r.is(Provisioned) {
		l.free = before // it allocates nothing
	}
	return err
}

func (e *existing) clone() *existing {
	c := &existing{nodes: slices.Clone(e.nodes)}
	for i := range c.nodes {
		c.nodes[i].left = c.nodes[i].left.DeepCopy()
	}
	return c
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
