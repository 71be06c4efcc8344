package kubecontroller

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// lookUp completes k with queue-manager's record of the workload. It queries even after
// a rejection, which may be that of a second submission of a live workload.
func (c *Controller) lookUp(ctx context.Context, id workload.ID, k *tracked) error {
	if k.record != nil {
		return nil
	}
	record, err := c.messages.Record(ctx, id)
	if err != nil || record == nil {
		return err
	}
	k.record, k.rejected = record, nil
	c.note(id, func(kept *tracked) {
		if kept.record == nil {
			kept.learn(record)
		}
	})
	return nil
}

// submit publishes the workload, and repeats that until there is an answer: NATS may
// lose it before queue-manager reads it.
func (c *Controller) submit(ctx context.Context, submitted *event.WorkloadSubmitted, k *tracked) (time.Duration, error) {
	if left := time.Until(k.submitted.next); left > 0 {
		return left, nil
	}
	w := submitted.Workload
	sequence, err := c.messages.Submit(ctx, w.Queue, submitted)
	if err != nil {
		return 0, fmt.Errorf("submit %s %s/%s as workload %s: %w", w.Kind, w.Namespace, w.Name, w.ID, err)
	}
	k.submitted.recordPublication(sequence, cmp.Or(c.options.RepeatAfter, queryAgainAfter), repeatMost)
	c.note(w.ID, func(kept *tracked) {
		kept.submitted, kept.queue, kept.warned, kept.unannounced = k.submitted, w.Queue, true, true
	})
	c.options.Logger.Info("object submitted", zap.Int("try", k.submitted.times), zap.String("workload", string(w.ID)), zap.String("kind", w.Kind),
		zap.String("namespace", w.Namespace), zap.String("name", w.Name), zap.String("queue", w.Queue))
	return time.Until(k.submitted.next), nil
}
