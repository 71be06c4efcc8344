package kubecontroller

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
)

// mostAsked is how many workloads are asked for at once, no more than query.MaxPage.
const mostAsked = 500

// Resync reconciles every object with a fresh record from queue-manager, because events may have
// been missed. It asks for many at once; an object whose workload has no answer asks by itself.
func (c *Controller) Resync(ctx context.Context) {
	answers := true
	for part := range slices.Chunk(c.all(), mostAsked) {
		c.forgetRecords(part)
		var records []workload.Record
		if answers {
			var err error
			if records, err = c.messages.Records(ctx, part); err != nil {
				answers = false
				c.options.Logger.Debug("no records of many workloads at once; each object asks by itself", zap.Error(err))
			}
		}
		c.learnAll(records)
		c.enqueueAll(part)
	}
	if c.options.Placed == nil {
		return
	}
	if err := c.cancelVanished(ctx); err != nil && ctx.Err() == nil {
		c.options.Logger.Warn("cannot look for workloads whose objects are gone; trying again with the next resync", zap.Error(err))
	}
}

func (c *Controller) all() []workload.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]workload.ID, 0, len(c.tracked))
	for id := range c.tracked {
		ids = append(ids, id)
	}
	return ids
}

func (c *Controller) forgetRecords(ids []workload.ID) {
	for _, id := range ids {
		c.note(id, func(k *tracked) {
			if k.rejected == nil {
				k.record = nil
			}
		})
	}
}

// learnAll takes in records, but of workloads of which an event has come meanwhile, or that were
// asked for.
func (c *Controller) learnAll(records []workload.Record) {
	for i := range records {
		c.note(records[i].ID, func(k *tracked) {
			if k.record == nil {
				k.learn(&records[i])
			}
		})
	}
}

func (c *Controller) enqueueAll(ids []workload.ID) {
	for _, id := range ids {
		c.note(id, func(k *tracked) { c.queue.Add(k.key) })
	}
}
