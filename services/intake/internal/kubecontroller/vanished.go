package kubecontroller

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"muster.dev/muster/pkg/kube/apiserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// uncached is the API server, for what the cache does not show.
type uncached interface {
	// UID returns that of an object; empty when it is not there.
	UID(ctx context.Context, key Key) (string, error)
}

// cancelVanished cancels the workloads that run elsewhere for objects that are gone: their finalizer
// was taken off by force while no controller ran. Of an object that is released at home the dispatcher
// sees that it is gone. What is refused for one keeps no other from it; without an answer the rest
// waits for the next time.
func (c *Controller) cancelVanished(ctx context.Context) error {
	placed, err := c.options.Placed(ctx)
	if err != nil {
		return err
	}
	var failed error
	for i := range placed {
		w := &placed[i]
		key, known := keyOf(&w.Workload)
		if !known || w.CancelRequested || c.Tracks(w.ID) {
			continue
		}
		err := c.cancelIfGone(ctx, w, key)
		failed = errors.Join(failed, err)
		var refused *query.ProblemError
		if !apiserver.Decided(err) && !errors.As(err, &refused) {
			break
		}
	}
	return failed
}

// cancelIfGone cancels the workload if the API server does not have its object.
func (c *Controller) cancelIfGone(ctx context.Context, w *workload.Record, key Key) error {
	uid, err := c.cluster.UID(ctx, key)
	if err != nil {
		return err
	}
	if uid != "" && c.ID(uid) == w.ID {
		return nil // the watch will show it
	}
	if _, err := c.messages.Cancel(ctx, w.Queue, "", &event.WorkloadCancel{Workload: w.ID, Why: key.String() + " is gone"}); err != nil {
		return fmt.Errorf("cancel workload %s, whose object is gone: %w", w.ID, err)
	}
	c.options.Logger.Warn("the object of a workload that runs elsewhere is gone; cancelling the workload",
		zap.String("workload", string(w.ID)), zap.Stringer("object", key), zap.String("cluster", w.Cluster))
	return nil
}

// keyOf names the Ray object of a workload.
func keyOf(w *workload.Workload) (key Key, known bool) {
	for _, resource := range resources() {
		kind := map[string]string{"rayjobs": workload.KindRayJob, "rayclusters": workload.KindRayCluster}[resource.Resource]
		if kind != "" && kind == w.Kind {
			return Key{resource, w.Namespace, w.Name}, true
		}
	}
	return Key{}, false
}

// UID asks for a list of one: intake may list objects, and no more.
func (c *Client) UID(ctx context.Context, key Key) (string, error) {
	list, err := c.objects.Resource(key.Resource).Namespace(key.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", key, err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == key.Name {
			return string(list.Items[i].GetUID()), nil
		}
	}
	return "", nil
}
