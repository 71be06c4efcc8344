package kubecontroller

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/kube"
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
	// samePosition is the part of a position by which it may move without a write: a tenth.
	samePosition = 10
)

// Standing is where a workload that waits stands in its queue, and when it is estimated to start.
// Its position is zero, and its estimate nil, where that is not known.
type Standing struct {
	Position int
	Starts   *workload.Estimate
}

// keepStandings asks where the workloads of objects stand, and has the objects marked with
// that, until ctx ends.
func (c *Controller) keepStandings(ctx context.Context) {
	for pause.For(ctx, estimatesEvery) == nil {
		if !c.anyWaits() {
			continue
		}
		standings, err := c.options.Standings(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.options.Logger.Debug("no positions and estimates for objects", zap.Error(err))
			}
			continue
		}
		c.mu.Lock()
		for id, k := range c.tracked {
			if k.waits() && k.key.ray() {
				k.standing = standings[id]
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

// unknownStarts is the text of the annotation of an object whose estimate has no time. It leaves
// out why, which may change with each workload that ends: that would be a write for each object.
const unknownStarts = "unknown"

// startsText is the text of the annotation: what it has already, unless the estimate has moved
// far; empty when there is none.
func (k *tracked) startsText(present string, now time.Time) string {
	starts := k.standing.Starts
	if !k.waits() || starts == nil {
		return ""
	}
	if starts.P50.IsZero() {
		return unknownStarts
	}
	first, last, _ := strings.Cut(present, ", by ")
	if near(first, starts.P50, now) && near(last, starts.P90, now) {
		return present
	}
	return fmt.Sprintf("%s, by %s", starts.P50.UTC().Format(startsFormat), starts.P90.UTC().Format(startsFormat))
}

// positionText is what the annotation says: what it has already, unless the position has moved
// far; empty when it is not known. So an object is written a few dozen times on its way through
// a queue of 10,000, and each of the last ten positions is exact.
func (k *tracked) positionText(present string) string {
	position := k.standing.Position
	if !k.waits() || position == 0 {
		return ""
	}
	if written, err := strconv.Atoi(present); err == nil && max(written-position, position-written) <= position/samePosition && position > samePosition {
		return present
	}
	return strconv.Itoa(position)
}

// otherNotes are the annotations beside the state and its reason whose text is another one now.
func (k *tracked) otherNotes(present map[string]string, moves bool) map[string]string {
	changed := map[string]string{}
	for name, text := range map[string]string{
		kube.StartsKey: k.startsText(present[kube.StartsKey], time.Now()), kube.PositionKey: k.positionText(present[kube.PositionKey]),
		kube.PlaceKey: k.placeText(moves), kube.StaleKey: k.staleText(moves),
	} {
		if present[name] != text {
			changed[name] = text
		}
	}
	return changed
}

// near reports whether a time in the annotation is about an estimated one.
func near(text string, at, now time.Time) bool {
	written, err := time.Parse(startsFormat, text)
	return err == nil && written.Sub(at).Abs() <= max(sameStart, at.Sub(now)/10)
}
