package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// hideWithin is how long a gang waits for a placeholder pod of its own that does not go, as for
// a finalizer. Nothing binds such a pod to a node, so it takes no place.
const hideWithin = 30 * time.Second

// placeholderWriter is the API server, to mark a placeholder pod as one without a node.
type placeholderWriter interface {
	ShowPlaceholder(ctx context.Context, pod kubernetes.Placeholder) error
}

// show does the next step towards the placeholder pods of a gang being there, one gang at a
// time. They have no scheduler and are marked as pods for which a scheduler found no node, so
// that an autoscaler adds nodes for them, and nothing ever binds them.
func (p *pass) show(ctx context.Context) (time.Duration, error) {
	showing, err := p.hideUnknown(ctx)
	if err != nil {
		return 0, err
	}
	if !p.shown.making.TryLock() {
		return requestLookAgain, nil
	}
	defer p.shown.making.Unlock()
	all, err := p.cluster.Placeholders(ctx, "", "")
	if err != nil {
		return 0, err
	}
	there := map[string]kubernetes.Placeholder{}
	for _, pod := range all {
		shown, _ := p.workloads.shows(pod)
		switch {
		case (shown || showing[keyOf(pod)] && !pod.Forged) && !p.isMine(pod):
			return requestLookAgain, p.waitToShow(ctx)
		case p.isMine(pod) && pod.Request == p.command.Provision.Name:
			there[pod.Name] = pod
		}
	}
	if len(there) == 0 { // those of an earlier number may be
		if err := p.removeRequests(ctx, p.command.Provision.Name); err != nil {
			return 0, err
		}
	}
	for _, pod := range there {
		if pod.Node != "" || pod.Forged {
			return 0, p.placeholderBound(ctx, pod)
		}
	}
	if done, again, err := p.createPlaceholders(ctx, there); !done {
		return again, err
	}
	status := p.requestStatus()
	status.Created, status.State, status.Message = true, event.RequestProvisioned, ""
	return requestMissed, p.report(ctx)
}

// isMine reports whether a pod is labelled as one of the workload, in its namespace.
func (p *pass) isMine(pod kubernetes.Placeholder) bool {
	return pod.Workload == p.command.Workload && pod.Namespace == p.command.Namespace
}

// waitToShow reports that the pods of another gang are still there.
func (p *pass) waitToShow(ctx context.Context) error {
	p.status.Provision.Message = "placeholder pods of another gang are still there"
	return p.report(ctx)
}

// placeholderBound takes all pods back when something has bound one: they must never run.
func (p *pass) placeholderBound(ctx context.Context, pod kubernetes.Placeholder) error {
	if err := p.removePlaceholders(ctx, ""); err != nil {
		return err
	}
	p.status.Provision.State = event.RequestFailed
	what := "has another scheduler"
	if pod.Node != "" {
		what = "was bound to node " + pod.Node
	}
	p.status.Provision.Message = fmt.Sprintf("pod %s %s; no scheduler may serve the name %s, and nothing may change it", pod.Name, what, kubernetes.PlaceholderScheduler)
	return p.report(ctx)
}

// createPlaceholders creates the pods that are missing and marks them all as pending.
func (p *pass) createPlaceholders(ctx context.Context, there map[string]kubernetes.Placeholder) (done bool, again time.Duration, err error) {
	if len(there) == 0 {
		for _, one := range p.creation.parts() { // what may not run needs no nodes
			if err := one.permit(ctx, p); err != nil {
				again, err = p.requestRefused(ctx, err)
				return false, again, err
			}
		}
	}
	pods, err := p.placeholders()
	if err != nil {
		again, err = p.requestRefused(ctx, finalError{err})
		return false, again, err
	}
	for _, pod := range pods {
		if _, has := there[pod.id.Name]; has {
			continue
		}
		uid, err := p.createPlaceholder(ctx, pod)
		if err != nil {
			again, err = p.requestNotCreated(ctx, err)
			return false, again, err
		}
		there[pod.id.Name] = kubernetes.Placeholder{Namespace: pod.id.Namespace, Name: pod.id.Name, UID: uid, Workload: p.command.Workload}
	}
	for _, pod := range pods { // when all are there: an autoscaler would add nodes for a part
		if seen := there[pod.id.Name]; !seen.Shown {
			if err := p.cluster.ShowPlaceholder(ctx, seen); err != nil {
				again, err = p.requestNotCreated(ctx, err)
				return false, again, err
			}
		}
	}
	return true, 0, nil
}

// createPlaceholder creates a pod. One of that name which is none of the workload's is of
// another party, and stays.
func (p *pass) createPlaceholder(ctx context.Context, pod placeholder) (uid string, err error) {
	for range 2 { // it may go before it is looked for
		if uid, err = p.cluster.CreateItem(ctx, pod.id, pod.manifest); !apierrors.IsAlreadyExists(err) {
			return uid, err
		}
		pods, err := p.cluster.Placeholders(ctx, p.command.Namespace, p.command.Workload)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(pods, func(there kubernetes.Placeholder) bool { return there.Name == pod.id.Name }) {
			return "", fmt.Errorf("pod %s: %w", pod.id, errLeaving) // or it was made a moment ago
		}
	}
	return "", finalError{fmt.Errorf("%s %w", pod.id, foreignError(pod.id))}
}

// hide removes the placeholder pods of a gang before its object is created. It reports whether
// that has to wait for some, which it does for a while.
func (p *pass) hide(ctx context.Context) (waits bool, err error) {
	if p.command.Provision == nil || p.command.Provision.Class != workload.PlaceholderClass {
		return false, nil
	}
	if err := p.removePlaceholders(ctx, ""); err != nil {
		return true, err
	}
	pods, err := p.cluster.Placeholders(ctx, p.command.Namespace, p.command.Workload)
	if err != nil || len(pods) == 0 {
		return false, err
	}
	within := hideWithin
	for _, pod := range pods {
		if pod.Node != "" || pod.Forged { // it may take a place
			within = removeWithin
		}
	}
	if waited := p.now().Sub(p.workload.creatingSince(p.command.Attempt, p.now())); waited > within {
		p.logger.Warn("placeholder pod is not deleted in time; creating the object anyway", append(p.fields(), zap.String("pod", pods[0].Name))...)
		return false, nil
	}
	p.status.Message = fmt.Sprintf("placeholder pod %s is being deleted and still there (see its metadata.finalizers); the %s is created when it is gone, or after %s", pods[0].Name, p.command.Kind, within)
	return true, p.report(ctx)
}

// removePlaceholders deletes the placeholder pods of the workload, but for those of a request.
func (p *pass) removePlaceholders(ctx context.Context, wanted string) error {
	pods, err := p.cluster.Placeholders(ctx, p.command.Namespace, p.command.Workload)
	faults := []error{err}
	for _, pod := range pods {
		if wanted == "" || pod.Request != wanted {
			faults = append(faults, deletePlaceholder(ctx, p.cluster, pod))
		}
	}
	return errors.Join(faults...)
}

func deletePlaceholder(ctx context.Context, cluster podDeleter, pod kubernetes.Placeholder) error {
	return cluster.DeletePod(ctx, gang.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, true)
}
