package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

const (
	// namedAfter is how long a removal takes before the status names what it waits for.
	namedAfter = 15 * time.Second
	// leftMost bounds the objects that are named, and the finalizers of each; leftBytes
	// bounds the text.
	leftMost  = 3
	leftBytes = 500
)

// noteLeft keeps an object that is being deleted and still there.
func (p *pass) noteLeft(object kubernetes.Object) {
	if !slices.ContainsFunc(p.left, func(o kubernetes.Object) bool { return o.UID == object.UID && o.Name == object.Name }) {
		p.left = append(p.left, object)
	}
}

// lookForClusters keeps the RayClusters that are being deleted, also those that KubeRay made.
func (p *pass) lookForClusters() {
	for _, cluster := range clustersOf(p.cache, p.command, func(o kubernetes.Object) bool { return o.Deleting }) {
		p.noteLeft(cluster)
	}
}

// removalBegan is since when the attempt is being removed: this process has known it for, or
// the API server has been deleting an object of it. The second outlives a restart.
func (p *pass) removalBegan() time.Time {
	since := p.workload.removingSince(p.command.Attempt, p.now())
	for _, object := range p.left {
		if !object.DeletedAt.IsZero() && object.DeletedAt.Before(since) {
			since = object.DeletedAt
		}
	}
	return since
}

// reportLeft has the status name what a removal waits for, once that takes long, and nothing
// any more when it goes on.
func (p *pass) reportLeft(ctx context.Context, failed error) error {
	text := ""
	if failed != nil && !answered(failed) {
		failed = nil // silence is no reason of this workload's, and reads differently each time
	}
	if p.now().Sub(p.removalBegan()) > namedAfter && (len(p.left) > 0 || failed != nil) {
		text = stuck(p.left, failed)
	}
	if last, known := p.workload.last(); text == last.Left && (known || text == "") {
		p.status.Left = text
		return nil
	}
	p.status.Left = text
	return p.report(ctx)
}

// answered reports whether the API server has refused something.
func answered(err error) bool {
	return apierrors.IsForbidden(err) || refusedForGood(err) || apierrors.IsInternalError(err)
}

// stuck names why a removal does not end: what is left, or what failed.
func stuck(left []kubernetes.Object, failed error) string {
	var texts []string
	for _, object := range left[:min(len(left), leftMost)] {
		texts = append(texts, fmt.Sprintf("%s %s/%s, which %s", object.Kind, object.Namespace, object.Name, finalizersOf(object)))
	}
	if more := len(left) - leftMost; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	if failed != nil {
		texts = append(texts, failed.Error())
	}
	if len(texts) == 0 {
		return "objects whose deletion does not end; check their finalizers"
	}
	text := strings.Join(texts, "; ")
	if len(text) > leftBytes {
		text = strings.ToValidUTF8(text[:leftBytes], "") + " ..."
	}
	return text
}

// finalizersOf returns what keeps an object that is being deleted.
func finalizersOf(object kubernetes.Object) string {
	names := object.Finalizers
	switch more := len(names) - leftMost; {
	case len(names) == 0:
		return "is being deleted"
	case len(names) == 1:
		return "has finalizer " + names[0]
	case more > 0:
		return fmt.Sprintf("has finalizers %s and %d more", strings.Join(names[:leftMost], ", "), more)
	}
	return "has finalizers " + strings.Join(names, ", ")
}

// leavingError returns what the deletion of an earlier object of the name waits for.
func leavingError(object kubernetes.Object) error {
	return fmt.Errorf("%w: %s", errLeaving, stuck([]kubernetes.Object{object}, nil))
}
