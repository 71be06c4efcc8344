package sim

import (
	"errors"
	"math/rand/v2"
	"time"
)

// The disk of NATS may be full for a while: NATS answers questions and delivers what it has,
// and takes no message.

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

// errFull refuses a message for want of room.
var errFull = errors.New("no space left on the disk of NATS")

// fill has the disk be full for a while.
func (n *network) fill(f TimedFault) string {
	n.full = later(n.full, n.w.now.Add(f.For))
	return f.For.String()
}

func (n *network) isFull() bool { return n.w.now.Before(n.full) }

// heardOf is what the sender of a message hears of a refusal for want of room: with BugDropped,
// nothing.
func (n *network) heardOf(err error) error {
	if n.w.Bug == BugDropped && errors.Is(err, errFull) {
		return nil
	}
	return err
}
