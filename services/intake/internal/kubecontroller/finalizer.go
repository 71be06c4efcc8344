package kubecontroller

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/spec/workload"
)

// lifeWriter is the API server, for how long an object stays.
type lifeWriter interface {
	SetFinalizer(ctx context.Context, object *unstructured.Unstructured, there bool) error
	// Unwatched reads an object that is not watched any more; nil if it is gone.
	Unwatched(ctx context.Context, key Key) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, object *unstructured.Unstructured) error
}

// notServed is the event and the log line of an object that intake may not write. It names
// what the reader can do: rights in a namespace come with a queue in it.
const notServed = "namespace %s is of no queue of Muster, or intake has no right to write there: the object is not submitted; use a namespace of the queue, or ask the operators of Muster for a queue in this one"

// addFinalizer adds the finalizer, with which the object is submitted. An object that intake
// may not write has an event about that, which does not depend on that right, and is tried
// again without another line in the log.
func (c *Controller) addFinalizer(ctx context.Context, object *unstructured.Unstructured, id workload.ID) (again time.Duration, err error) {
	err = c.cluster.SetFinalizer(ctx, object, true) // the change enqueues the object again
	if !apierrors.IsForbidden(err) {
		c.note(id, func(kept *tracked) { kept.forbidden = false })
		return 0, err
	}
	reported := false
	c.note(id, func(kept *tracked) { reported, kept.forbidden = kept.forbidden, true })
	if reported {
		return retryMost, nil
	}
	why := fmt.Sprintf(notServed, object.GetNamespace())
	c.options.Logger.Warn(why, zap.String("kind", object.GetKind()), zap.String("namespace", object.GetNamespace()), zap.String("name", object.GetName()), zap.Error(err))
	if err := c.cluster.RecordEvent(ctx, object, true, "MusterNotServed", why); err != nil {
		return 0, err
	}
	return retryMost, nil
}

// letGo removes the finalizer of an object that is there without a queue label: where no policy refuses
// that, its user has removed the label, and nothing else would ever remove the finalizer. Nothing is
// asked about an object whose finalizer this controller has removed, and which is gone with that.
func (c *Controller) letGo(ctx context.Context, key Key, k tracked) error {
	if !key.ray() || k.freed {
		return nil
	}
	object, err := c.cluster.Unwatched(ctx, key)
	if err != nil || object == nil || string(object.GetUID()) != k.uid || queueOf(object) != "" || !hasFinalizer(object) {
		return err
	}
	return c.cluster.SetFinalizer(ctx, object, false)
}

// Forbidden counts the objects that wait because intake may not write them.
func (c *Controller) Forbidden() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, k := range c.tracked {
		if k.forbidden {
			count++
		}
	}
	return count
}
