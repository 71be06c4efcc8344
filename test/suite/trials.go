package suite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Leader stands for the queue-manager that leads when a fault begins.
const Leader = "the leader"

// Trial is a fault that is caused several times.
type Trial struct {
	Parts []string // at once
	Fault Fault
	For   time.Duration
	// Rival: the fault lasts until the other queue-manager leads, so that there are
	// two who believe that they do.
	Rival bool
	// And is a second fault at the same time; nil for none.
	And *Trial
}

// String returns what is done.
func (t Trial) String() string {
	if t.And != nil {
		first := t
		first.And = nil
		return first.String() + ", and " + t.And.String()
	}
	what := fmt.Sprintf("%s %s", strings.Join(t.Parts, " and "), t.Fault)
	if t.Rival {
		return what + " until the other one leads, then on again: two leaders at once"
	}
	switch {
	case t.Fault == Back:
		what += " of " + t.For.String() + " before"
	case t.For >= time.Second:
		what += " for " + t.For.String()
	}
	return what
}

// Kind returns what a fault strikes: who leads, processes, streams, or connections.
func (t Trial) Kind() string {
	switch {
	case t.Rival:
		return "two leaders"
	case t.Fault == Purged || t.Fault == StreamsGone || t.Fault == StreamsBare || t.Fault == Wiped:
		return "streams"
	case t.Fault == Killed || t.Fault == Paused:
		return "processes"
	}
	return "connections"
}

// Trials are all faults that processes of one machine can be made to have. away is
// how long the API server is away.
func Trials(away time.Duration) []Trial {
	trials := []Trial{
		{Parts: []string{Leader}, Fault: Paused, Rival: true},
		{Parts: []string{Leader}, Fault: CutFromPostgres, Rival: true},
		{Parts: []string{Leader}, Fault: CutInCommit, For: 3 * time.Second},
		{Parts: []string{Postgres}, Fault: Killed, For: 3 * time.Second},
		{Parts: []string{Postgres}, Fault: Terminated},
		{Parts: []string{NATS(1)}, Fault: Wiped, For: 3 * time.Second},
		{Parts: []string{NATS(1)}, Fault: Purged},
		{Parts: []string{NATS(1)}, Fault: StreamsGone},
		{Parts: []string{NATS(1)}, Fault: StreamsBare},
		{Parts: []string{CapacityWatcher, Dispatcher}, Fault: CutFromAPI, For: away},
		{Parts: []string{Dispatcher}, Fault: Killed, For: time.Second},
		{Parts: []string{NATS(1)}, Fault: Killed, For: 3 * time.Second},
		{Parts: []string{NATS(1)}, Fault: Paused, For: 8 * time.Second},
		{Parts: []string{Leader}, Fault: Killed, For: time.Second},
		{Parts: []string{Leader}, Fault: CutByNATS, For: 15 * time.Second},
		{Parts: []string{Leader}, Fault: HalfClosedNATS, For: time.Second},
		{Parts: []string{Leader}, Fault: HalfClosedPostgres, For: time.Second},
		{Parts: []string{Leader}, Fault: LatePostgres, For: 15 * time.Second},
		{Parts: Services(), Fault: LateNATS, For: 15 * time.Second},
		{Parts: []string{Intake, CapacityWatcher, Dispatcher}, Fault: HalfClosedNATS, For: time.Second},
		{Parts: []string{Intake, CapacityWatcher, Dispatcher}, Fault: HalfClosedAPI, For: time.Second},
		{Parts: []string{QueueManager(1), QueueManager(2)}, Fault: Killed, For: time.Second},
	}
	for _, part := range []string{Intake, CapacityWatcher, Dispatcher} {
		if part != Dispatcher {
			trials = append(trials, Trial{Parts: []string{part}, Fault: Killed, For: time.Second})
		}
		trials = append(trials,
			Trial{Parts: []string{part}, Fault: Paused, For: 5 * time.Second},
			Trial{Parts: []string{part}, Fault: CutByNATS, For: 8 * time.Second})
	}
	return append(trials, Trial{Parts: append([]string{Postgres, NATS(1)}, Services()...), Fault: Killed, For: time.Second})
}

// Machines are the faults of what processes stand on: power, disks, names, and the state
// of the API server.
func Machines() []Trial {
	var trials []Trial
	for _, parts := range [][]string{{NATS(1)}, {Postgres}, {NATS(1), Postgres}} {
		trials = append(trials,
			Trial{Parts: parts, Fault: PowerLost, For: 3 * time.Second},
			Trial{Parts: parts, Fault: DiskSlow, For: 15 * time.Second})
	}
	for _, part := range []string{NATS(1), Postgres} {
		trials = append(trials,
			Trial{Parts: []string{part}, Fault: PowerLostTorn, For: 3 * time.Second},
			Trial{Parts: []string{part}, Fault: DiskFull, For: 8 * time.Second},
			Trial{Parts: []string{part}, Fault: DiskFailing, For: 8 * time.Second})
	}
	return append(trials,
		Trial{Parts: []string{APIServer}, Fault: Back, For: 5 * time.Second},
		Trial{Parts: []string{DNS}, Fault: Silent, For: 15 * time.Second},
		Trial{Parts: []string{DNS}, Fault: ServFail, For: 15 * time.Second})
}

// Policies are the changes of the configuration that meet gangs at a bad moment.
func Policies() []Trial {
	return []Trial{{Parts: []string{ResearchQuota}, Fault: Lowered, For: 15 * time.Second}}
}

// Several are the faults that strike several of three NATS servers at once: two, so that
// nothing can be stored meanwhile, and all.
func Several() []Trial {
	return []Trial{
		{Parts: []string{NATS(1), NATS(2)}, Fault: Killed, For: 3 * time.Second},
		{Parts: []string{NATS(1), NATS(2), NATS(3)}, Fault: PowerLost, For: 3 * time.Second},
	}
}

// Clocks are the faults of the wall clocks of services and of NATS. A term goes by the clock that it
// has begun with, so the leader ends, too, while both clocks are wrong.
func Clocks() []Trial {
	var trials []Trial
	for _, fault := range []Fault{ClockAhead, ClockBehind} {
		trials = append(trials, Trial{
			Parts: []string{QueueManager(1), QueueManager(2)}, Fault: fault, For: 15 * time.Second,
			And: &Trial{Parts: []string{Leader}, Fault: Killed, For: time.Second},
		})
	}
	for _, part := range []string{Leader, Dispatcher, CapacityWatcher, Intake, NATS(1)} {
		for _, fault := range []Fault{ClockAhead, ClockBehind, ClockSways} {
			trials = append(trials, Trial{Parts: []string{part}, Fault: fault, For: 15 * time.Second})
		}
	}
	return trials
}

// shape adds to a shape what the faults at once need.
func (t Trial) shape(s Shape) Shape {
	for each := &t; each != nil; each = each.And {
		s.Disks = s.Disks || each.Fault.OfDisk()
		s.Clocks = s.Clocks || each.Fault.OfClock()
		s.Quota = s.Quota || each.Fault == Lowered
		s.Names = s.Names || each.Fault.OfNames()
		s.Synced = s.Synced || each.losesAll(s.NATS)
	}
	return s
}

// losesAll reports whether all of several NATS servers lose power at once.
func (t Trial) losesAll(servers int) bool {
	lost := 0
	for _, part := range t.Parts {
		if strings.HasPrefix(part, "nats-") {
			lost++
		}
	}
	return servers > 1 && lost == servers && (t.Fault == PowerLost || t.Fault == PowerLostTorn)
}

// Pairs draws a number of pairs of faults that do not strike the same part, each pair once,
// in one order.
func Pairs(trials []Trial, count int, random *rand.Rand) []Trial {
	return drawPairs(count, func() (first, second Trial) {
		return trials[random.IntN(len(trials))], trials[random.IntN(len(trials))]
	})
}

// MixedPairs is Pairs where at least one of the two faults is among others. A pair needs an
// installation for both faults.
func MixedPairs(trials, others []Trial, count int, random *rand.Rand) []Trial {
	all := slices.Concat(trials, others)
	return drawPairs(count, func() (first, second Trial) {
		return all[random.IntN(len(all))], others[random.IntN(len(others))]
	})
}

func drawPairs(count int, draw func() (first, second Trial)) (pairs []Trial) {
	drawn := map[[2]string]bool{}
	for tries := 0; len(pairs) < count && tries < 1000*count; tries++ {
		first, second := draw()
		if first.Rival || second.Rival || first.touches(second) {
			continue
		}
		if second.Fault == Lowered { // only a whole installation can be asked for it
			first, second = second, first
		}
		both := [2]string{first.String(), second.String()}
		slices.Sort(both[:])
		if drawn[both] {
			continue
		}
		drawn[both] = true
		first.And = &second
		pairs = append(pairs, first)
	}
	return pairs
}

// touches reports whether two faults strike the same part.
func (t Trial) touches(other Trial) bool {
	parts := func(of Trial) map[string]bool {
		all := map[string]bool{}
		for _, part := range of.Parts {
			all[part] = true
			if part == Leader { // it may be either
				for i := range QueueManagers {
					all[QueueManager(i+1)] = true
				}
			}
		}
		return all
	}
	theirs := parts(other)
	for part := range parts(t) {
		if theirs[part] {
			return true
		}
	}
	return false
}
