package kubecontroller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// lookUp completes k with queue-manager's record of the workload. It queries even after
// a rejection, which may be that of a second submission of a live workload.
func (c *Controller) lookUp(ctx context.Context, id workload.ID, k *tracked) error {
	if k.record != nil {
		return nil
	}
	records, err := c.messages.Records(ctx, []workload.ID{id})
	if err != nil || len(records) == 0 {
		return err
	}
	record := &records[0]
	k.record, k.rejected = record, nil
	c.note(id, func(kept *tracked) {
		if kept.record == nil {
			kept.learn(record)
		}
	})
	return nil
}

// lookUpUnlessNew is lookUp of a workload that queue-manager may have: not of an object that was
// created since this process began, and for which nothing has been published yet. Another intake
// may have submitted it all the same, or the clock of the API server may be ahead; then this is a
// repetition, which changes nothing.
func (c *Controller) lookUpUnlessNew(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k *tracked) error {
	created := object.GetCreationTimestamp()
	if !k.submittedBefore && k.rejected == nil && created.After(c.began) {
		return nil
	}
	return c.lookUp(ctx, id, k)
}

// refusedQueue returns why objects of the cluster are not submitted to a queue; nil when they are.
func (c *Controller) refusedQueue(queue string) *workload.Reason {
	if len(c.options.Queues) == 0 || slices.Contains(c.options.Queues, queue) {
		return nil
	}
	return &workload.Reason{Kind: workload.ReasonQueue, Message: fmt.Sprintf("queue %q takes no objects that are made in cluster %q; use one of: %s",
		queue, c.options.Cluster, strings.Join(c.options.Queues, ", "))}
}

// submit publishes the workload, and repeats that until there is an answer: NATS may
// lose it before queue-manager reads it.
func (c *Controller) submit(ctx context.Context, submitted *event.WorkloadSubmitted, k *tracked) (time.Duration, error) {
	if left := time.Until(k.submitted.next); left > 0 {
		return left, nil
	}
	w := submitted.Workload
	if reason := c.refusedQueue(w.Queue); reason != nil {
		k.rejected = reason
		c.note(w.ID, func(kept *tracked) { kept.rejected = reason })
		c.askForMark(w.ID)
		return 0, nil
	}
	// First: the message may be stored although no answer comes, and the object be gone then.
	k.queue, k.submittedBefore = w.Queue, true
	c.note(w.ID, func(kept *tracked) { kept.queue, kept.submittedBefore = w.Queue, true })
	sequence, err := c.messages.Submit(ctx, w.Queue, k.uid, submitted)
	if err != nil {
		return 0, fmt.Errorf("submit %s %s/%s as workload %s: %w", w.Kind, w.Namespace, w.Name, w.ID, err)
	}
	k.submitted.recordPublication(sequence, cmp.Or(c.options.RepeatAfter, queryAgainAfter), repeatMost)
	c.note(w.ID, func(kept *tracked) {
		kept.submitted, kept.warned, kept.unannounced = k.submitted, true, true
	})
	c.options.Logger.Info("object submitted", zap.Int("try", k.submitted.times), zap.String("workload", string(w.ID)), zap.String("kind", w.Kind),
		zap.String("namespace", w.Namespace), zap.String("name", w.Name), zap.String("queue", w.Queue))
	return time.Until(k.submitted.next), nil
}
