package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The disk of NATS may be full for a while: NATS answers questions and delivers what it has, and
// stores no message. A stream that could not store a message then stores none and answers no
// publisher until NATS is restarted, which an operator does when a process reports it:
// docs/operations.md, "Losing things".

// drawFull draws how long the disk is full.
func drawFull(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classFull)+100))
	for range 1 + random.IntN(2) {
		timed = append(timed, TimedFault{
			At:    5*time.Second + time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
			Fault: Full, Pick: random.Uint64() >> 12,
			For: time.Second + time.Duration(random.Int64N(int64(time.Minute))).Truncate(time.Millisecond),
		})
	}
	return timed
}

// errFull is how a publication ends that NATS could not store and does not answer.
var errFull = fmt.Errorf("no space left on the disk of NATS: %w", context.DeadlineExceeded)

// fill has the disk be full for a while. From then on an operator looks at what the processes
// report.
func (n *network) fill(f TimedFault) string {
	if n.full.IsZero() {
		n.w.after(reportsEvery, n.w.operator.watchStorage)
	}
	n.full = later(n.full, n.w.now.Add(f.For))
	return f.For.String()
}

func (n *network) isFull() bool { return n.w.now.Before(n.full) }

// storesIn reports whether a stream stores the message that has come. If not, because the disk is
// full, it stores no later one either.
func (n *network) storesIn(stream string) bool {
	if n.isFull() {
		n.stuck[stream] = true
	}
	return !n.stuck[stream]
}

const (
	// reportsEvery is how often the operator looks at /readyz of the processes.
	reportsEvery = 5 * time.Second
	restartTakes = 5 * time.Second
)

// watchStorage has the operator restart NATS when its disk has room, a process reports that
// nothing is stored, and the log of NATS agrees.
func (o *operator) watchStorage() {
	n := o.w.net
	if !n.isFull() && len(n.stuck) > 0 && n.isReported() {
		o.w.narrate("the operator restarts NATS, in which %d streams store nothing", len(n.stuck))
		clear(n.stuck)
		n.away(natsServer, restartTakes)
		o.w.nemesis.last = later(o.w.nemesis.last, o.w.now.Add(restartTakes)) // the fault is over then
		o.w.check.made[madeRestarts]++
	}
	o.w.after(reportsEvery, o.watchStorage)
}

// isReported reports whether a process that is connected, or the submitters' client, reports that
// NATS stores nothing: with BugUnreported, none does.
func (n *network) isReported() bool {
	if n.w.Bug == BugUnreported || n.down(natsServer) {
		return false
	}
	return n.w.submits.storage.Failure(n.w.now) != nil || slices.ContainsFunc(n.w.machines, func(m *machine) bool {
		return !m.dead && n.w.reaches(m, natsServer) && m.storage.Failure(n.w.now) != nil
	})
}

// heardOf is what the sender of a message hears when it was not stored for want of room: with
// BugDropped, nothing.
func (n *network) heardOf(err error) error {
	if n.w.Bug == BugDropped && errors.Is(err, errFull) {
		return nil
	}
	return err
}
