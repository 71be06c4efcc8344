package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// checkMoved reads the manifest of an object that a user made in another cluster, and compares its
// pods with those that places were found for. An intake in that cluster has read it before, but its
// key is there, so a thief of the key may have sent another manifest than was read.
func checkMoved(command *event.GangCommand) error {
	if command.Home == "" || isBundle(command) {
		return nil
	}
	operator := ray.Shipped()
	// What KubeRay adds is not in the manifest; the profile of that cluster may say that it adds less.
	operator.InitContainerInjection, operator.RedisCleanup = false, false
	// Their overhead is that of the cluster where the pods run, which its API server adds.
	for _, class := range runtimeClassesIn(command.Manifest) {
		if operator.RuntimeClasses[class] == nil {
			operator.RuntimeClasses[class] = corev1.ResourceList{}
		}
	}
	read, err := operator.Read(command.Manifest)
	if err != nil {
		return fmt.Errorf("read the manifest of cluster %q: %w", command.Home, err)
	}
	if read.Kind != command.Kind {
		return fmt.Errorf("manifest of cluster %q: kind %q; want %q", command.Home, read.Kind, command.Kind)
	}
	planned := make(map[string]workload.PodSet, len(command.PodSets))
	for _, set := range command.PodSets {
		planned[set.Name] = set
	}
	for _, set := range read.PodSets {
		has, known := planned[set.Name]
		if submitted := has.Count - has.Resized; !known || set.Count > submitted {
			return fmt.Errorf("manifest of cluster %q: %d pods of %q, but %d were submitted", command.Home, set.Count, set.Name, submitted)
		}
		for name, amount := range set.Template.Requests {
			if amount > has.Template.Requests[name] {
				return fmt.Errorf("manifest of cluster %q: a pod of %q asks for more %s than was submitted", command.Home, set.Name, name)
			}
		}
	}
	return nil
}

// removeMoved removes what is left of an ended workload: the finished job of a user in another
// cluster is read there. Its last status is published once more, so that it is kept for an hour.
func (p *pass) removeMoved(ctx context.Context) (time.Duration, error) {
	if err := p.readObjects(); err != nil {
		return 0, err
	}
	left, err := p.presence.remove(ctx, p)
	var later *laterError
	switch {
	case errors.As(err, &later): // it is another attempt's, of which there is another command
	case err != nil:
		return 0, err
	case left > 0 && p.now().Sub(p.workload.removingSince(p.command.Attempt, p.now())) <= removeWithin:
		return pollAfter, nil
	}
	return 0, p.reports.forget(ctx, p.workload)
}
