package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addPending adds nodes to pools for pods that the scheduler finds no node for: as many as
// there is room for, which may be for a part of the pods.
func (l *look) addPending(ctx context.Context) error {
	var pods []*corev1.PodSpec
	read := false
	var faults []error
	for _, name := range l.order {
		p := l.pools[name]
		if !p.Pending {
			continue
		}
		l.waits = true // pods that become pending trigger nothing
		if !read {
			var err error
			if pods, err = l.unschedulable(ctx); err != nil {
				return err
			}
			read = true
		}
		var rest, mine []*corev1.PodSpec
		for _, pod := range pods {
			if _, fits := nodesFor(p.template, []*corev1.PodSpec{pod}); fits && admits(p.template, pod) {
				mine = append(mine, pod)
			} else {
				rest = append(rest, pod)
			}
		}
		pods = rest
		faults = append(faults, l.addFor(ctx, p, mine))
	}
	return errors.Join(faults...)
}

// addFor adds nodes of a pool for pods that have been pending for its delay.
func (l *look) addFor(ctx context.Context, p *pool, pods []*corev1.PodSpec) error {
	if len(pods) == 0 {
		delete(l.pending, p.Name)
		return nil
	}
	since, known := l.pending[p.Name]
	if !known {
		since = l.now()
		l.pending[p.Name] = since
	}
	if l.now().Sub(since) < p.Delay.Duration {
		return nil
	}
	delete(l.pending, p.Name)
	count, _ := nodesFor(p.template, pods)
	return l.add(ctx, p, min(count, p.room()), nil)
}

// unschedulable returns the pods that the scheduler has looked at, and that nodes without
// pods have no place for: those have come for them, and the scheduler will see.
func (l *look) unschedulable(ctx context.Context) ([]*corev1.PodSpec, error) {
	list, err := l.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending"})
	if err != nil {
		return nil, fmt.Errorf("listing pending pods: %w", err)
	}
	var pods []*corev1.PodSpec
	for i := range list.Items {
		pod := &list.Items[i]
		tried := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		})
		if tried && pod.DeletionTimestamp == nil && pod.Spec.NodeName == "" && pod.Annotations[consumes] == "" {
			pods = append(pods, &pod.Spec)
		}
	}
	if len(pods) == 0 {
		return nil, nil
	}
	e, err := l.exists(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods, e.place), nil
}
