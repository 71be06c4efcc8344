package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// held is how long a fault lasts when nothing else ends it.
const held = 3 * time.Second

// Run runs all suites.
func Run(t *testing.T, p Provider) {
	t.Logf("parts are %s", p.Name())
	t.Run("one NATS server", func(t *testing.T) { single(t, p) })
	t.Run("three NATS servers", func(t *testing.T) { cluster(t, p) })
}

// Kills kills every part of an installation with one NATS server under load: both
// servers at once, then all services at once. Run kills them one after the other.
func Kills(t *testing.T, p Provider) {
	t.Logf("parts are %s", p.Name())
	w := newWorld(t, p, Shape{NATS: 1})
	t.Run("nothing breaks", func(t *testing.T) { w.load(t, func() {}) })
	t.Run("the servers", func(t *testing.T) {
		w.load(t, func() { w.hold(t, Killed, Postgres, NATS(1)) })
	})
	t.Run("the services", func(t *testing.T) {
		w.load(t, func() { w.hold(t, Killed, Services()...) })
	})
	w.check(t)
}

// single breaks every part of an installation with one NATS server, one after
// the other, under load.
func single(t *testing.T, p Provider) {
	w := newWorld(t, p, Shape{NATS: 1})
	t.Run("nothing breaks", func(t *testing.T) { w.load(t, func() {}) })
	for _, c := range []struct {
		part  string
		fault Fault
	}{
		{Intake, Killed},
		{CapacityWatcher, Killed},
		{Dispatcher, Killed},
		{Dispatcher, CutByNATS},
		{CapacityWatcher, CutByNATS},
		{Postgres, Killed},
		{NATS(1), Killed},
		{NATS(1), Wiped},
	} {
		t.Run(fmt.Sprintf("%s %s", c.part, c.fault), func(t *testing.T) {
			w.load(t, func() { w.hold(t, c.fault, c.part) })
		})
	}
	for _, fault := range []Fault{Killed, Paused, CutFromPostgres, CutByNATS} {
		t.Run(fmt.Sprintf("the leader %s", fault), func(t *testing.T) {
			w.load(t, func() { w.replaceLeader(t, fault) })
		})
	}
	w.check(t)
}

// cluster breaks one of three NATS servers: the others go on. The next is broken
// when all have again what the others have; then it goes on without that, and
// without a majority.
func cluster(t *testing.T, p Provider) {
	w := newWorld(t, p, Shape{NATS: 3})
	for i, fault := range []Fault{Killed, CutByNATS, Paused} {
		part := NATS(i + 1)
		t.Run(fmt.Sprintf("%s %s", part, fault), func(t *testing.T) {
			w.until(t, "all NATS servers have everything", w.replicated)
			// Also after a failure: what comes next needs all servers.
			defer w.breaks(t, part, fault)()
			w.load(t, func() {}) // all of it while the server is away
		})
	}
	t.Run("two killed at once", w.withoutQuorum)
	t.Run("one killed before another has caught up", w.beforeCaughtUp)
	w.check(t)
}

// hold causes a fault of parts at once, for a while. Where it can be caused of some of them only, the
// test fails: it is not the test that its name says, and no machine lacks what it needs.
func (w *world) hold(t *testing.T, fault Fault, parts ...string) {
	t.Helper()
	for i, part := range parts {
		mend, err := w.tryBreak(t, part, fault)
		if i > 0 && errors.Is(err, ErrNotHere) {
			t.Fatalf("%s is %s, and not %s: %v", strings.Join(parts[:i], " and "), fault, part, err)
		}
		skipOrFail(t, part, fault, err)
		defer mend()
	}
	select {
	case <-time.After(held): // the length of a fault is what is tested
	case <-t.Context().Done():
	}
}

// replaceLeader causes a fault of the leader, which the other queue-manager must
// take over from while it lasts.
func (w *world) replaceLeader(t *testing.T, fault Fault) {
	t.Helper()
	leader, epoch := w.leader(t)
	began := time.Now()
	mend := w.breaks(t, leader, fault)
	defer mend()
	w.until(t, "the other queue-manager leads", func() bool {
		now, later := w.leader(t)
		return now != leader && later > epoch
	})
	t.Logf("%s was %s, the other one led after %s", leader, fault, time.Since(began).Round(time.Millisecond))
	// The new leader must admit while the old one is away.
	w.running(t, w.submit(t))
}

// breaks causes a fault and returns its end.
func (w *world) breaks(t *testing.T, part string, fault Fault) (mend func()) {
	t.Helper()
	mend, err := w.tryBreak(t, part, fault)
	skipOrFail(t, part, fault, err)
	return mend
}

// skipOrFail ends the test when a fault was not caused.
func skipOrFail(t *testing.T, part string, fault Fault, err error) {
	t.Helper()
	if errors.Is(err, ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", part, fault, err)
	}
}

// tryBreak causes a fault, if it can, and returns its end.
func (w *world) tryBreak(t *testing.T, part string, fault Fault) (mend func(), err error) {
	t.Helper()
	heal, err := w.Break(t.Context(), part, fault)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := heal(w.ctx); err != nil {
			t.Errorf("%s is to be no longer %s: %v", part, fault, err)
		}
	}, nil
}
