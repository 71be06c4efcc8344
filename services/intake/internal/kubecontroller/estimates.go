package kubecontroller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// estimatesEvery is the pause between two questions for the estimates of all that waits.
	estimatesEvery = 30 * time.Second
	// startsFormat is a time in the annotation, to the minute.
	startsFormat = "2006-01-02T15:04Z"
	// sameStart, and a tenth of the wait, is how far an estimate may move without a write.
	sameStart = 2 * time.Minute
)

// keepEstimates asks when the workloads of objects start, and has the objects marked with
// that, until ctx ends.
func (c *Controller) keepEstimates(ctx context.Context) {
	for pause.For(ctx, estimatesEvery) == nil {
		if !c.anyWaits() {
			continue
		}
		estimates, err := c.options.Estimates(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.options.Logger.Debug("no estimates for objects", zap.Error(err))
			}
			continue
		}
		c.mu.Lock()
		for id, k := range c.tracked {
			if k.waits() && k.key.ray() {
				k.starts = estimates[id]
				c.marks.AddAfter(k.key, k.untilMark(time.Now()))
			}
		}
		c.mu.Unlock()
	}
}

// anyWaits reports whether the workload of a Ray object waits.
func (c *Controller) anyWaits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.tracked {
		if k.waits() && k.key.ray() {
			return true
		}
	}
	return false
}

func (k *tracked) waits() bool { return k.record != nil && k.record.Phase == workload.Queued }

// startsText is what the annotation says: what it has already, unless the estimate has moved
// far; empty when there is none.
func (k *tracked) startsText(present string, now time.Time) string {
	if !k.waits() || k.starts == nil || k.starts.P50.IsZero() {
		return ""
	}
	first, last, _ := strings.Cut(present, ", by ")
	if near(first, k.starts.P50, now) && near(last, k.starts.P90, now) {
		return present
	}
	return fmt.Sprintf("%s, by %s", k.starts.P50.UTC().Format(startsFormat), k.starts.P90.UTC().Format(startsFormat))
}

// near reports whether a time in the annotation is about an estimated one.
func near(text string, at, now time.Time) bool {
	written, err := time.Parse(startsFormat, text)
	return err == nil && written.Sub(at).Abs() <= max(sameStart, at.Sub(now)/10)
}
