package sim

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// partialFor bounds how long a gang may have some of its pods on nodes and not all:
// its ready deadline, and the time to tear it down.
const partialFor = 5 * time.Minute

// overdue looks at what must have happened by now.
func (c *checker) overdue() {
	w := c.w
	present := map[attemptKey]int{}
	for _, p := range w.cluster.pods {
		if p.workload != "" && p.node != "" {
			present[attemptKey{p.workload, p.attempt}]++
		}
	}
	for key := range c.partial {
		if present[key] == 0 {
			delete(c.partial, key)
		}
	}
	for key, pods := range present {
		each := w.submits.by[key.id]
		since, known := c.partial[key]
		switch {
		case each == nil || pods >= w.wholeAt(each):
			delete(c.partial, key)
		case !known:
			c.partial[key] = w.now
		case w.now.Sub(later(since, w.nemesis.last)) > partialFor:
			w.breach("G1", "%s has had %d of %d pods on nodes for %s", each.name, pods, w.wholeAt(each), w.now.Sub(since))
		}
	}
	c.overduePolicy()
	if quiet := w.now.Sub(later(w.nemesis.last, w.start.Add(faultsFor))); quiet > calmFor && len(w.disk.refused) == 0 {
		w.breach("G3", "%s after the last fault: %s", quiet, c.left())
	}
}

// wholeAt is how many pods a gang has when it is whole: those that it has places for
// and are wanted.
func (w *World) wholeAt(each *submission) int {
	pods := each.pods
	if r := w.disk.live[each.id]; r != nil && r.Holding {
		pods = r.Pods()
	}
	for _, o := range w.cluster.objects {
		if o.workload == each.id {
			pods = min(pods, o.size())
		}
	}
	return pods
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// left returns what keeps the world from being done.
func (c *checker) left() string {
	w := c.w
	var left []string
	for _, each := range w.submits.all {
		record, known := w.disk.record(each.id)
		if each.final == rejectedPhase {
			continue
		}
		if each.final == "" || !known || !record.Phase.Final() || record.Holding {
			reason := ""
			if record.Reason != nil {
				reason = record.Reason.Message
			}
			left = append(left, fmt.Sprintf("%s is %q (%s)", each.name, record.Phase, reason))
		}
	}
	for _, key := range sortedKeys(w.cluster.objects) {
		left = append(left, "object "+key)
	}
	if w.scaled() {
		left = append(left, sortedKeys(w.cluster.scaler.items)...)
	}
	for _, p := range w.cluster.podsOf(func(p *pod) bool { return p.workload != "" }) {
		left = append(left, "pod "+p.name)
	}
	if len(w.disk.outbox) > 0 {
		left = append(left, fmt.Sprintf("%d messages in the outbox", len(w.disk.outbox)))
	}
	left = append(left, c.unpublishedEnds()...)
	return words(left)
}

// endOf returns the workload whose end a message of the stream of events reports, or none. A world that
// does not come to its end is looked at each second, so each message is decoded once.
func (c *checker) endOf(m bus.Delivery) workload.ID {
	if len(m.Data) == 0 {
		return ""
	}
	end, known := c.ends[&m.Data[0]]
	if !known {
		if changed := changedIn(m); changed != nil && changed.Phase.Final() {
			end = changed.ID
		}
		c.ends[&m.Data[0]] = end
	}
	return end
}

// unpublishedEnds lists the workloads whose end no event of the stream reports.
func (c *checker) unpublishedEnds() (left []string) {
	w := c.w
	published := map[workload.ID]bool{}
	if s := w.net.streams[bus.EventsStream]; s != nil {
		for _, m := range s.messages {
			published[c.endOf(m)] = true
		}
	}
	for _, each := range w.submits.all {
		if each.final != "" && each.final != rejectedPhase && !published[each.id] {
			left = append(left, "no event tells the end of "+each.name)
		}
	}
	return left
}

// clean reports whether nothing is held, running or still to be published: G5.
func (c *checker) clean() bool {
	w := c.w
	if w.scaled() && len(w.cluster.scaler.items) > 0 {
		return false
	}
	return len(w.disk.live) == 0 && len(w.cluster.objects) == 0 && len(w.disk.outbox) == 0 &&
		len(w.cluster.podsOf(func(p *pod) bool { return p.workload != "" })) == 0 && len(c.unpublishedEnds()) == 0 &&
		!slices.ContainsFunc(w.machines, func(m *machine) bool { return m.dead })
}

// reserved sums up what is reserved on nodes.
func (l *ledger) reserved() map[admission.NodeKey]resource.List {
	sums := map[admission.NodeKey]resource.List{}
	for _, r := range l.live {
		for _, p := range r.Placements {
			key := admission.NodeKey{Cluster: r.Cluster, Name: p.Node}
			sums[key] = sums[key].Plus(r.requests[p.PodSet].Times(int64(p.Pods)))
		}
	}
	return sums
}
