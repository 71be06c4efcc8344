package admission

import (
	"cmp"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// regret is what the eviction of gangs loses, in seconds of accelerators, then of pods: work,
// and the next start, which is measured (learned.go). Where a checkpoint interval is in force the
// start counts for no more than that: a tenant can make starts long, and its limit bounds what a
// gang may be worth. The wait for that start is measured and
// reported, and not weighed: others use the accelerators meanwhile, and with it large gangs are
// spared for many small ones, and more is lost (docs/queues.md). The work is that since the
// admission. Where a checkpoint interval is in force it is that since
// the last checkpoint, and never more than the interval: silence is worth as much as the
// interval, and each report and each shorter interval makes it less. So a false report gains
// nothing.
type regret struct{ accelerators, pods int64 }

// mostRegret bounds one gang's, so that sums can be counted.
const mostRegret = 1 << 44

// regretOf returns what the eviction of a gang loses now. It is never nothing: each gang
// starts again.
func (d *decision) regretOf(g *Started) regret {
	start, _ := d.state.restartOf(g)
	if g.Progress.Interval > 0 {
		start = min(start, g.Progress.Interval)
	}
	again := g.countedWork(d.now) + start
	bounded := func(of int64) int64 { return min(mostRegret, seconds(again, of)) }
	r := regret{pods: max(1, bounded(int64(g.Workload.Pods())))}
	if units, accelerators := g.units(); accelerators {
		r.accelerators = bounded(units)
	}
	return r
}

// countedWork returns how long the gang has worked for what its eviction is taken to lose.
func (g *Started) countedWork(now time.Time) time.Duration {
	if g.Progress.Interval <= 0 {
		return max(0, now.Sub(g.Admitted))
	}
	since, _ := g.savedAt(now)
	return min(max(0, now.Sub(since)), g.Progress.Interval)
}

// savedAt returns when the gang has saved its work last: its last checkpoint, or else its
// admission, when there was nothing to save. A time that cannot be is none.
func (g *Started) savedAt(now time.Time) (at time.Time, checkpoint bool) {
	if at = g.Progress.Checkpoint; at.After(g.Admitted) && !at.After(now) {
		return at, true
	}
	return g.Admitted, false
}

func (r regret) plus(other regret) regret {
	return regret{r.accelerators + other.accelerators, r.pods + other.pods}
}

func (r regret) compare(other regret) int {
	return cmp.Or(cmp.Compare(r.accelerators, other.accelerators), cmp.Compare(r.pods, other.pods))
}

// seconds multiplies whole seconds, within what can be counted.
func seconds(of time.Duration, units int64) int64 {
	return resource.SaturatingMul(int64(max(0, of)/time.Second), units)
}
