package sim

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Fault is a way to fail.
type Fault string

// Faults at the calls of services.
const (
	CrashBefore   Fault = "crash before a call"
	CrashDuring   Fault = "crash while a call is done"
	CrashAfter    Fault = "crash after a call"
	LostRequest   Fault = "request lost"
	DoneButFailed Fault = "done but reported as failed"
	Delay         Fault = "request delayed"
)

// Faults of messages.
const (
	LostMessage Fault = "message lost"
	Duplicate   Fault = "message delivered twice"
	Restarted   Fault = "subscription starts over"
)

// Faults of the world, at a time.
const (
	Crash        Fault = "process killed"
	Pause        Fault = "process stands still"
	PauseLeader  Fault = "leader stands still"
	LateLeader   Fault = "leader stands still, its last messages arrive after it"
	CutFrom      Fault = "process cut from a server"
	ClockJump    Fault = "clock jumps"
	NATSAway     Fault = "NATS away"
	NATSWiped    Fault = "NATS loses all data"
	NATSTail     Fault = "NATS loses the last messages"
	Purged       Fault = "a stream is purged"
	PostgresAway Fault = "Postgres away"
	APIAway      Fault = "API server away"
	ServiceAway  Fault = "all processes of a service away"
	LinkCut      Fault = "the cluster cut from the core"
	Refusal      Fault = "the database refuses a workload for good"
	Absurd       Fault = "an absurd submission"
	Forged       Fault = "a pod with the labels of another's gang"
	Lie          Fault = "another cluster lies"
	NodeLost     Fault = "node deleted"
	NodeUnready  Fault = "node not ready"
	ObjectGone   Fault = "kubectl delete of an object"
	PodGone      Fault = "kubectl delete of a pod"
	Intruder     Fault = "a pod without a reservation"
	Cancel       Fault = "cancelled by its submitter"
	Reruled      Fault = "the queue configuration changes"
	Older        Fault = "Postgres is restored to an older state"
	Resized      Fault = "a cluster is made larger or smaller"
	Cramped      Fault = "a ResourceQuota has room for few pods"
	Held         Fault = "a workload is held"
	Requeued     Fault = "an attempt is requeued"
	Ranked       Fault = "a workload is given another priority"
	MovedOver    Fault = "a workload is moved to another queue"
	CancelEarly  Fault = "a cancellation comes before its submission"
	QueueHeld    Fault = "a queue is held"
	Bare         Fault = "a stream loses its files"
	Full         Fault = "the disk of NATS is full"
	Repeated     Fault = "a refused submission comes again"
	Missed       Fault = "commands are purged that the dispatchers have not read"
)

type siteCall struct {
	site string
	nth  int
}

// nemesis causes the faults.
type nemesis struct {
	w        *World
	random   *rand.Rand
	calls    map[string]int
	scripted map[siteCall]Fault
	rate     float64
	happened Script
	counts   map[Fault]int
	last     time.Time
}

func newNemesis(w *World) *nemesis {
	n := &nemesis{w: w, random: rand.New(rand.NewPCG(w.Seed, 2)), calls: map[string]int{}, counts: map[Fault]int{}}
	// Seeds differ in how bad their world is, so that there are quiet stretches too.
	n.rate = []float64{0, 0.002, 0.005, 0.01, 0.02}[n.random.IntN(5)]
	if w.Script != nil {
		n.scripted = map[siteCall]Fault{}
		for _, c := range w.Script.Calls {
			n.scripted[siteCall{c.Site, c.Nth}] = c.Fault
		}
	}
	return n
}

// at draws what happens to a call; empty for nothing.
func (n *nemesis) at(site string) Fault {
	return n.draw(site, CrashBefore, CrashDuring, CrashAfter, LostRequest, DoneButFailed, DoneButFailed, Delay)
}

func (n *nemesis) draw(site string, kinds ...Fault) Fault {
	n.calls[site]++
	nth := n.calls[site]
	if n.scripted != nil {
		if fault := n.scripted[siteCall{site, nth}]; fault != "" {
			n.note(fault, site)
			n.happened.Calls = append(n.happened.Calls, CallFault{site, nth, fault})
			return fault
		}
		return ""
	}
	if n.w.now.Sub(n.w.start) > faultsFor || n.random.Float64() >= n.rate*weight(site) {
		return ""
	}
	fault := kinds[n.random.IntN(len(kinds))]
	n.note(fault, site)
	n.happened.Calls = append(n.happened.Calls, CallFault{site, nth, fault})
	return fault
}

// weight makes faults more frequent where the effect is outside and the answer is
// all that is known of it: at these most promises hang, and there are few of them.
func weight(site string) float64 {
	for _, few := range []string{" Create", " COMMIT", " publish workload"} {
		if strings.HasSuffix(site, few) {
			return 8
		}
	}
	return 1
}

func (n *nemesis) note(fault Fault, what string) {
	n.counts[fault]++
	n.last = later(n.last, n.w.now)
	n.w.narrate("FAULT %s: %s", fault, what)
}

// worldFaults are drawn with these weights.
var worldFaults = []Fault{
	Crash, Crash, Crash, Pause, PauseLeader, PauseLeader, LateLeader, LateLeader, CutFrom, CutFrom, ClockJump, NATSAway, NATSWiped, NATSTail, Purged, Purged, PostgresAway,
	APIAway, NodeLost, NodeUnready, ObjectGone, PodGone, Intruder, Cancel, Cancel,
}

// lateFor bounds how long a leader goes on whose messages do not arrive.
const lateFor = 2 * time.Second

// begin draws the faults of the world, or takes the script's.
func (n *nemesis) begin() {
	var timed []TimedFault
	if n.w.Script != nil {
		timed = n.w.Script.Timed
	} else {
		if n.w.tight() { // places move
			for range 4 + n.random.IntN(8) {
				timed = append(timed, TimedFault{
					At: time.Duration(n.random.Int64N(int64(faultsFor))).Truncate(time.Millisecond), Pick: n.random.Uint64() >> 12,
					Fault: []Fault{NodeLost, NodeUnready}[n.random.IntN(2)],
					For:   time.Second + time.Duration(n.random.Int64N(int64(20*time.Second))).Truncate(time.Millisecond),
				})
			}
		}
		timed = append(timed, n.drawRules()...)
		for range n.random.IntN(16) {
			timed = append(timed, TimedFault{
				At:    time.Duration(n.random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
				Fault: worldFaults[n.random.IntN(len(worldFaults))], Pick: n.random.Uint64() >> 12,
				For: time.Second + time.Duration(n.random.Int64N(int64(20*time.Second))).Truncate(time.Millisecond),
			})
		}
		timed = append(timed, n.ofClasses()...)
	}
	for _, f := range timed {
		n.w.after(f.At, func() { n.strike(f) })
	}
}

// ofClasses draws the faults of the seed's classes.
func (n *nemesis) ofClasses() (timed []TimedFault) {
	if n.w.is(classAway) {
		timed = append(timed, drawAway(n.w)...)
	}
	if n.w.is(classRefused) {
		timed = append(timed, drawRefusals(n.w)...)
	}
	if n.w.is(classHostile) {
		timed = append(timed, drawHostile(n.w)...)
	}
	if n.w.is(classOlder) {
		timed = append(timed, drawOlder(n.w)...)
	}
	if n.w.is(classEarly) {
		timed = append(timed, drawCramped(n.w)...)
	}
	if n.w.is(classOperated) {
		timed = append(timed, drawOperated(n.w)...)
	}
	if n.w.is(classRepeated) {
		timed = append(timed, drawRepeated(n.w)...)
	}
	if n.w.is(classBare) {
		timed = append(timed, drawBare(n.w)...)
	}
	if n.w.is(classFull) {
		timed = append(timed, drawFull(n.w)...)
	}
	if n.w.shown() {
		timed = append(timed, drawMissed(n.w)...)
	}
	return timed
}

// drawRules draws what happens to the policy and the sizes of gangs in a ruled seed.
func (n *nemesis) drawRules() (timed []TimedFault) {
	if !n.w.ruled() {
		return nil
	}
	for range 6 + n.random.IntN(14) {
		timed = append(timed, TimedFault{
			At: time.Duration(n.random.Int64N(int64(faultsFor))).Truncate(time.Millisecond), Pick: n.random.Uint64() >> 12,
			Fault: []Fault{Reruled, Resized}[n.random.IntN(2)],
			For:   5*time.Second + time.Duration(n.random.Int64N(int64(40*time.Second))).Truncate(time.Millisecond),
		})
	}
	return timed
}

// What a Pick says of a purge: its rest by three is the stream, and a bit that the leader
// does not read the last messages. Another bit, which seeds do not draw, is for the events.
const (
	ofCommands = 2
	unread     = 128
	ofEvents   = 1 << 52
)
