package kubecontroller

import (
	"context"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// statusesEvery is the pause between two rounds of questions for these statuses.
	statusesEvery = 2 * time.Second
	// staleAfter is how long questions may fail before the objects are marked with that.
	staleAfter = 30 * time.Second
	// mostSilent is after how many questions in a row without an answer no more are asked until the
	// next round: each takes seconds.
	mostSilent = 3
)

// keepStatuses asks for the statuses of what runs in the place of objects, and has the objects
// marked with them, until ctx ends.
func (c *Controller) keepStatuses(ctx context.Context) {
	for pause.For(ctx, statusesEvery) == nil {
		c.askStatuses(ctx)
	}
}

// askStatuses asks for each status once, but for what is left after mostSilent questions in a row
// have had no answer.
func (c *Controller) askStatuses(ctx context.Context) {
	ids := c.elsewhere()
	for silent := 0; len(ids) > 0 && silent < mostSilent; {
		part := ids[:min(len(ids), query.MostHomeStatuses)]
		ids = ids[len(part):]
		statuses, err := c.options.Statuses(ctx, part)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.options.Logger.Debug("no statuses of what runs in the place of objects", zap.Error(err))
			silent++
			c.noteSilence(part)
			continue
		}
		silent = 0
		c.noteStatuses(part, statuses)
	}
	c.noteSilence(ids)
}

// elsewhere returns the workloads with an object in the place of theirs.
func (c *Controller) elsewhere() (ids []workload.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, k := range c.tracked {
		if k.placed() && k.record.Life.Moves && !k.mirrored.settled {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// noteStatuses has the objects marked of which another status is known.
func (c *Controller) noteStatuses(ids []workload.ID, statuses []query.HomeStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark := func(k *tracked) { c.marks.AddAfter(k.key, k.untilMark(time.Now())) }
	for _, id := range ids {
		k := c.tracked[id]
		if k == nil {
			continue
		}
		k.mirrored.heard = time.Now()
		if !k.mirrored.stale.IsZero() {
			k.mirrored.stale = time.Time{}
			mark(k)
		}
		if !k.mirrored.asked {
			k.mirrored.asked = true
			mark(k)
		}
		k.mirrored.settled = k.record != nil && k.record.Phase.Final() && !k.record.Holding
	}
	for _, status := range statuses {
		if k := c.tracked[status.Workload]; k != nil && !reflect.DeepEqual(k.mirrored.last, status) {
			k.mirrored.last = status
			mark(k)
		}
	}
}

// noteSilence has the objects marked whose statuses are not known any more.
func (c *Controller) noteSilence(ids []workload.ID) {
	now := time.Now()
	for _, id := range ids {
		c.note(id, func(k *tracked) {
			m := &k.mirrored
			switch {
			case m.heard.IsZero():
				m.heard = now
			case m.stale.IsZero() && now.Sub(m.heard) > staleAfter:
				m.stale = m.heard
				c.marks.AddAfter(k.key, k.untilMark(now))
			}
		})
	}
}
