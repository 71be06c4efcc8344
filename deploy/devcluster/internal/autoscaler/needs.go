package autoscaler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/deploy/devcluster/internal/nodes"
)

// podSet is a number of like pods of a request.
type podSet struct {
	template string // the name of its PodTemplate
	pod      *corev1.PodSpec
	count    int
}

// podSets reads the pods of a request; why when it names a PodTemplate that is not there.
func (l *look) podSets(ctx context.Context, r *request) (sets []podSet, why string, err error) {
	for _, set := range r.Spec.PodSets {
		template, err := l.client.CoreV1().PodTemplates(r.Namespace).Get(ctx, set.PodTemplateRef.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Sprintf("there is no PodTemplate %q", set.PodTemplateRef.Name), nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("reading the pods of request %s/%s: %w", r.Namespace, r.Name, err)
		}
		sets = append(sets, podSet{template: template.Name, pod: &template.Template.Spec, count: int(set.Count)})
	}
	return sets, "", nil
}

// needs returns how many nodes of which pools the request still needs; why when it cannot
// have all of them now.
func (l *look) needs(r *request, of []*pool, sets []podSet) (needs map[*pool]int, why string) {
	pods := map[*pool][]*corev1.PodSpec{}
	for _, set := range sets {
		at := slices.IndexFunc(of, func(p *pool) bool {
			_, fits := nodesFor(p.template, []*corev1.PodSpec{set.pod})
			return fits && admits(p.template, set.pod)
		})
		if at < 0 && set.count > 0 {
			return nil, fmt.Sprintf("no pool has nodes for the pods of PodTemplate %q", set.template)
		}
		for range set.count {
			pods[of[at]] = append(pods[of[at]], set.pod)
		}
	}
	needs = map[*pool]int{}
	for p, specs := range pods {
		count, _ := nodesFor(p.template, specs)
		for i := range p.nodes { // of an earlier try
			if p.nodes[i].Labels[RequestLabel] == string(r.UID) {
				count--
			}
		}
		if count > p.room() {
			return nil, fmt.Sprintf("pool %s has room for %d more nodes, and the request needs %d", p.Name, p.room(), count)
		}
		needs[p] = max(count, 0)
	}
	return needs, ""
}

// add creates nodes of a pool, with labels beside those of the pool.
func (l *look) add(ctx context.Context, p *pool, count int, labels map[string]string) error {
	if count == 0 {
		return nil
	}
	group := p.Template
	group.Count = &count
	group.Labels = map[string]string{PoolLabel: p.Name}
	maps.Copy(group.Labels, p.Template.Labels)
	maps.Copy(group.Labels, labels)
	_, err := nodes.Add(ctx, l.client, group)
	return err
}
