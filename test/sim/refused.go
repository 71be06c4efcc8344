package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// refusal is something of one workload that the database does not store, for good.
type refusal struct {
	part simhooks.Part
	code string // SQLSTATE
	hit  bool   // a commit was refused for it
}

// firstPersistent is the first seed in which refusals may have an SQLSTATE that passes by waiting.
const firstPersistent = 9000

// refusable are the parts of a commit that may be refused; codes with what SQLSTATE, and persistent
// with what SQLSTATE that should pass by waiting.
var (
	refusable  = []simhooks.Part{simhooks.PartAdded, simhooks.PartPlaces, simhooks.PartEnd, simhooks.PartHistory, simhooks.PartMessage}
	codes      = []string{"XX000", "P0001", "22P05", "54000", "0A000", "42804", "MU123"}
	persistent = []string{"40001", "53100", "55000", "57014", "58030"}
)

// drawRefusals draws what the database refuses: one workload, or two, and more where it is
// restored to an older state.
func drawRefusals(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classRefused)+100))
	for range 1 + random.IntN(2) {
		timed = append(timed, TimedFault{
			At: time.Duration(random.Int64N(int64(faultsFor / 2))).Truncate(time.Millisecond), Fault: Refusal, Pick: random.Uint64() >> 12,
		})
	}
	if w.is(classOlder) {
		timed = append(timed, drawLostRefusals(w, random)...)
	}
	return timed
}

// drawLostRefusals draws refusals of workloads just before time is lost, so that the term after it
// finds streams that are ahead with what it cannot write.
func drawLostRefusals(w *World, random *rand.Rand) (timed []TimedFault) {
	const each = 3
	for _, f := range drawLapses(w) {
		if f.Fault != Older {
			continue
		}
		for range each {
			pick := random.Uint64() >> 12
			for part := refusable[pick/64%uint64(len(refusable))]; part != simhooks.PartHistory && part != simhooks.PartMessage; part = refusable[pick/64%uint64(len(refusable))] {
				pick += 64
			}
			timed = append(timed, TimedFault{At: f.At + f.For - 10*time.Millisecond, Fault: Refusal, Pick: pick})
		}
	}
	return timed
}

// refuse has the database refuse a workload from now on.
func (l *ledger) refuse(f TimedFault) string {
	each := l.w.submits.all[f.Pick%uint64(len(l.w.submits.all))]
	if each.final != "" || l.mended || l.refused[each.id] != nil {
		return ""
	}
	drawn := codes
	if l.w.Seed >= firstPersistent {
		drawn = slices.Concat(codes, persistent)
	}
	r := &refusal{part: refusable[f.Pick/64%uint64(len(refusable))], code: drawn[f.Pick/1024%uint64(len(drawn))]}
	l.refused[each.id] = r
	l.real.refuses(r.part, each.id, r.code)
	return fmt.Sprintf("%s of %s, with %s", r.part, each.name, r.code)
}

// mend is what an operator does in the end: the cause is gone, and what was set
// aside is released.
func (l *ledger) mend() {
	l.mended = true
	l.real.mended()
	clear(l.refused)
	clear(l.quarantine)
	l.w.nemesis.last = later(l.w.nemesis.last, l.w.now) // something may be away for longer
	l.w.narrate("the database refuses no workload any more, and quarantine is empty")
}

// releaseAgain is after how long the operator looks at quarantine once more.
const releaseAgain = time.Minute

// release takes everything out of quarantine. A process that could not write to it
// what it had set aside does so when it leads again, and the operator finds it there.
func (l *ledger) release() {
	l.real.released()
	clear(l.quarantine)
	l.w.narrate("quarantine is emptied once more")
}

// cause is how the database refuses.
func (r *refusal) cause(id workload.ID) error {
	return simhooks.Explained(&pgconn.PgError{Severity: "ERROR", Code: r.code, Message: fmt.Sprintf("%s %s is refused", r.part, id)})
}

// parts lists of which workloads a commit writes a part, in order.
func parts(c state.Changes, part simhooks.Part) (ids []workload.ID) {
	cold := func(r workload.Record) bool { return r.Phase.Final() && !r.Holding }
	switch part {
	case simhooks.PartEnd:
		for _, r := range (&judgement{c: c}).records() {
			if cold(r) {
				ids = append(ids, r.ID)
			}
		}
	case simhooks.PartAdded:
		for _, a := range c.Added {
			if !cold(a.Record) {
				ids = append(ids, a.ID)
			}
		}
	case simhooks.PartPlaces:
		ended := map[workload.ID]bool{}
		for _, id := range parts(c, simhooks.PartEnd) {
			ended[id] = true
		}
		for _, r := range slices.Concat(c.Reserved, c.Replaced) {
			if !ended[r.Workload] {
				ids = append(ids, r.Workload)
			}
		}
	case simhooks.PartHistory:
		for _, h := range c.History {
			ids = append(ids, h.Workload)
		}
	case simhooks.PartMessage:
		for _, m := range c.Messages {
			ids = append(ids, workload.ID(m.Payload.CloudEventSubject()))
		}
	}
	return ids
}

// refusals lists what of a commit the database refuses: all of the first part of
// which it refuses any.
func (l *ledger) refusals(c state.Changes) (refused []simhooks.Refusal) {
	for _, part := range refusable {
		named := map[workload.ID]bool{}
		for _, id := range parts(c, part) {
			if r := l.refused[id]; r != nil && r.part == part && !named[id] {
				named[id] = true
				refused = append(refused, simhooks.Refusal{Part: part, Workload: id, Cause: r.cause(id)})
			}
		}
		if len(refused) > 0 {
			return refused
		}
	}
	return nil
}

// refuses is the error of a commit that the database refuses; nil for none.
func (l *ledger) refuses(c state.Changes) error {
	refused := l.refusals(c)
	if len(refused) == 0 {
		return nil
	}
	l.refused[refused[0].Workload].hit = true
	for _, r := range refused {
		l.blamed[r.Workload] = true
	}
	return refused[0].Cause
}

// Probe implements engine.Store.
func (l *ledger) Probe(_ context.Context, c state.Changes, record simhooks.Record, passing string) (refused []simhooks.Refusal, err error) {
	return refused, l.w.call(postgresServer, "Probe", func() (err error) {
		refused, err = looked(l.refusals(c), passing)
		if passing != "" && len(refused) > 0 {
			l.w.check.made[madePersistent]++
		}
		l.real.probed(c, record, passing, refused, err)
		return err
	})
}

// looked leaves out the refusals that should pass by waiting, but for those with the SQLSTATE that
// is looked for. It returns the error of one of them when no others are left.
func looked(all []simhooks.Refusal, passing string) (refused []simhooks.Refusal, err error) {
	for _, r := range all {
		if code := simhooks.Passing(r.Cause); code != "" && code != passing {
			err = r.Cause
			continue
		}
		refused = append(refused, r)
	}
	if len(refused) > 0 {
		return refused, nil
	}
	return nil, err
}

// othersGoOn: whatever is refused, all others come to their end. When they have, or
// should have, the database is mended, and then those who were refused must follow.
func (c *checker) othersGoOn() {
	w := c.w
	if len(w.disk.refused) == 0 || w.disk.mended {
		return
	}
	var silent []string
	holds := false // a gang that is kept may hold what others wait for
	for id, r := range w.disk.refused {
		record, known := w.disk.record(id)
		holds = holds || known && record.Holding
		each := w.submits.by[id]
		if unreported := r.hit && each.final == "" && !each.why && w.disk.quarantine[id].Why == ""; unreported {
			silent = append(silent, each.name)
		}
	}
	var left []string
	for _, each := range w.submits.all {
		record, _ := w.disk.record(each.id)
		if w.disk.refused[each.id] == nil && each.final == "" && !(holds && record.Phase == workload.Queued) {
			left = append(left, fmt.Sprintf("%s is %q", each.name, record.Phase))
		}
	}
	switch calm := c.calm(); {
	case calm && len(left) > 0:
		w.breach("G3", "the database refuses one workload, and others stand still: %s", words(left))
	case calm && len(silent) > 0:
		w.breach("G3", "the database refuses workloads that have no reason: %s", words(silent))
	case calm, len(left) == 0 && w.now.Sub(w.start) > faultsFor:
		w.disk.mend()
	}
}

// calm reports whether all should have come to its end since the last fault.
func (c *checker) calm() bool {
	return c.w.now.Sub(later(c.w.nemesis.last, c.w.start.Add(faultsFor))) > calmFor
}
