package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube/lease"
)

const (
	lasts  = 4 * time.Second // the default
	renews = time.Second
	// moment is what requests without delay may take of a test's clock: retries of none.
	moment = 10 * time.Millisecond
)

// process is a holder or a standby in a test, whose clock is synctest's.
type process struct {
	*link
	guard lease.Guard
	began chan time.Time // of each term
	end   func()

	mu    sync.Mutex
	ended []error // of each term
}

// process runs one with a way to the server of its own.
func (s *server) process(t *testing.T, name string) *process {
	t.Helper()
	p := &process{link: s.link(), began: make(chan time.Time, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	p.end = func() { cancel(); <-over }
	go func() {
		defer close(over)
		_ = lease.Run(ctx, lease.Options{ // it ends with ctx
			Client: p, Namespace: "muster-system", Name: "l", Holder: name, Duration: lasts, Logger: zap.NewNop(),
			Guard: &p.guard, Standby: func() {}, Pause: time.Millisecond,
			AtLeast: func(context.Context) (int64, error) { return 0, nil },
		}, func(ctx context.Context, _ int64) error {
			p.began <- time.Now()
			<-ctx.Done()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.ended = append(p.ended, context.Cause(ctx))
			return ctx.Err()
		})
	}()
	return p
}

// acts reports whether the process may act.
func (p *process) acts() bool { return p.guard.Check() == nil }

// terms is how many terms have ended.
func (p *process) terms() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ended)
}

// pair starts a holder and a standby.
func pair(t *testing.T) (s *server, holder, standby *process) {
	t.Helper()
	s = &server{}
	holder = s.process(t, "holder")
	<-holder.began
	standby = s.process(t, "standby")
	time.Sleep(10 * renews)
	synctest.Wait()
	if len(standby.began) > 0 || !holder.acts() {
		t.Fatal("the standby has taken the lease of a holder that renews it")
	}
	return s, holder, standby
}

// TestAKilledHolderIsReplacedWhenItsLeaseEnds: not before, and not much later. Both need no
// common clock: the holder, which is only cut off here, refuses to act by its own one before.
func TestAKilledHolderIsReplacedWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(holder, standby *link)
		after  time.Duration // the last renewal
		later  time.Duration // the most that the take-over may be after the end of the lease
	}{
		{"at once after a renewal", func(_, _ *link) {}, 0, moment},
		{"between two renewals", func(_, _ *link) {}, renews / 2, moment},
		{"just before a renewal", func(_, _ *link) {}, renews - moment, moment},
		{"with a clock an hour behind", func(h, _ *link) { h.skew = -time.Hour }, renews / 2, moment},
		{"with a clock an hour ahead", func(h, _ *link) { h.skew = time.Hour }, renews / 2, moment},
		{"and the standby may not watch", func(_, s *link) { s.blind = true }, 0, renews + moment},
		{"and the standby's way is slow", func(_, s *link) { s.late = 100 * time.Millisecond }, 0, time.Second / 2},
		{"and the standby's way is slower than renewals", func(_, s *link) { s.late = 1100 * time.Millisecond }, 0, lasts + 3*1100*time.Millisecond + moment},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				holder := s.process(t, "holder")
				holder.set(func(h *link) { c.change(h, &link{}) })
				<-holder.began
				standby := s.process(t, "standby")
				defer standby.end()
				defer holder.end()
				standby.set(func(s *link) { c.change(&link{}, s) })
				time.Sleep(10 * renews)
				s.awaitRenewal()
				time.Sleep(c.after)
				holder.set(func(h *link) { h.cut = true })
				s.mu.Lock()
				renewed := s.stored
				s.mu.Unlock()
				began := <-standby.began
				if holder.acts() {
					t.Error("two act")
				}
				if took := began.Sub(renewed); took < lasts || took > lasts+c.later {
					t.Errorf("the standby acts %s after the last renewal, want %s and at most %s more", took, lasts, c.later)
				}
				holder.set(func(h *link) { h.cut = false })
				time.Sleep(2 * lasts)
				synctest.Wait()
				if holder.terms() != 1 || len(holder.began) > 0 || !standby.acts() || holder.acts() {
					t.Errorf("the one that was cut off has ended %d terms, want 1, and must stand by", holder.terms())
				}
			})
		})
	}
}

// awaitRenewal returns at once after a renewal.
func (s *server) awaitRenewal() {
	s.mu.Lock()
	version := s.version
	s.mu.Unlock()
	for {
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		now := s.version
		s.mu.Unlock()
		if now != version {
			return
		}
	}
}

// TestAnAPIServerThatIsAwayEndsNoTerm: the holder stops acting when its lease may be over, and
// goes on in the same term when the API server is back before others have the Lease.
func TestAnAPIServerThatIsAwayEndsNoTerm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		away    func(*link)
		lasts   time.Duration
		stopped bool // from acting, at the end of it
		ended   int  // terms
	}{
		{"no answer for 2 s", func(l *link) { l.cut = true }, 2 * time.Second, false, 0},
		{"refused for 2 s", func(l *link) { l.down = true }, 2 * time.Second, false, 0},
		{"refused for 5 s", func(l *link) { l.down = true }, 5 * time.Second, true, 0},
		{"no answer for 5 s", func(l *link) { l.cut = true }, 5 * time.Second, true, 0},
		{"refused for 10 s", func(l *link) { l.down = true }, 10 * time.Second, true, 0},
		{"refused for a minute", func(l *link) { l.down = true }, time.Minute, true, 1},
		{"answers take 1 s for a minute", func(l *link) { l.late = time.Second }, time.Minute, false, 0},
		{"answers take 2.5 s for a minute", func(l *link) { l.late = 2500 * time.Millisecond }, time.Minute, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, holder, standby := pair(t)
				defer standby.end()
				defer holder.end()
				for _, l := range []*link{holder.link, standby.link} {
					l.set(c.away)
				}
				never := true
				for range c.lasts / renews {
					time.Sleep(renews)
					synctest.Wait()
					never = never && holder.acts()
				}
				if never == c.stopped {
					t.Errorf("the holder acted all the time: %t, want %t", never, !c.stopped)
				}
				for _, l := range []*link{holder.link, standby.link} {
					l.set(func(l *link) { l.cut, l.down, l.late = false, false, 0 })
				}
				time.Sleep(3 * lasts)
				synctest.Wait()
				acting := 0
				for _, p := range []*process{holder, standby} {
					if p.acts() {
						acting++
					}
				}
				if ended := holder.terms(); ended != c.ended || acting != 1 || c.ended == 0 && !holder.acts() {
					t.Errorf("%d terms have ended, want %d; %d processes act, the holder: %t", ended, c.ended, acting, holder.acts())
				}
			})
		})
	}
}

// TestAHolderWhoseRenewalsComeLateFindsItsSuccessor: its renewal is on its way while another
// process takes the Lease, and is refused.
func TestAHolderWhoseRenewalsComeLateFindsItsSuccessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, holder, standby := pair(t)
		defer standby.end()
		defer holder.end()
		holder.set(func(h *link) { h.late = lasts - time.Millisecond })
		<-standby.began
		if holder.acts() {
			t.Error("two act")
		}
		holder.set(func(h *link) { h.late = 0 })
		time.Sleep(lasts)
		synctest.Wait()
		if holder.terms() != 1 || !errors.Is(holder.ended[0], lease.ErrLost) {
			t.Errorf("the terms of the late one have ended with %v, want one ErrLost", holder.ended)
		}
	})
}

// TestRequestsForALease bounds the load of the API server in a quiet minute.
func TestRequestsForALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, holder, standby := pair(t)
		defer standby.end()
		defer holder.end()
		before, idle := holder.counted(), standby.counted()
		time.Sleep(time.Minute)
		synctest.Wait()
		after := holder.counted()
		if writes := after["update"] - before["update"]; writes < 59 || writes > 61 {
			t.Errorf("%d renewals in a minute, want 60", writes)
		}
		if reads := after["get"] - before["get"]; reads > 0 {
			t.Errorf("the holder has read the Lease %d times, want never", reads)
		}
		now := standby.counted()
		for _, verb := range []string{"get", "watch", "update", "create"} {
			if now[verb] != idle[verb] {
				t.Errorf("the standby has sent %d requests to %s the Lease, want none", now[verb]-idle[verb], verb)
			}
		}
	})
}

// TestAProcessNeedNotWaitForItself: a term ends by itself, and its release is lost. The same
// process takes the Lease at once, because it knows that the work has ended.
func TestAProcessNeedNotWaitForItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := (&server{}).link()
		l.kept = true
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began, terms := time.Now(), 0
		err := lease.Run(ctx, lease.Options{
			Client: l, Namespace: "muster-system", Name: "l", Holder: "one", Duration: lasts, Logger: zap.NewNop(), Standby: func() {},
			Pause: time.Millisecond, AtLeast: func(context.Context) (int64, error) { return 0, nil },
		}, func(context.Context, int64) error {
			if terms++; terms == 2 {
				cancel()
			}
			return errors.New("stream not found")
		})
		if took := time.Since(began); !errors.Is(err, context.Canceled) || terms != 2 || took >= lasts {
			t.Errorf("Run returned %v, %d terms after %s; want 2 before a lease of %s has ended", err, terms, took, lasts)
		}
	})
}

// TestAStandbyMakesADeletedLeaseWithItsLastNotes: a standby hears of the deletion first, and the
// services keep notes on the Lease, such as what the dispatcher may keep.
func TestAStandbyMakesADeletedLeaseWithItsLastNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, holder, standby := pair(t)
		defer holder.end()
		defer standby.end()
		s.note("example.com/noted", "until noon")
		time.Sleep(10 * renews)
		holder.set(func(h *link) { h.down = true })
		s.remove()
		<-standby.began
		s.mu.Lock()
		defer s.mu.Unlock()
		if got := s.lease.Annotations["example.com/noted"]; got != "until noon" {
			t.Errorf("the Lease is there again with the annotations %v", s.lease.Annotations)
		}
	})
}

// TestAHolderThatIsAlwaysTooLateGivesWay: its renewals are stored, so that no standby may take the
// Lease, and each too late to act by.
func TestAHolderThatIsAlwaysTooLateGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, holder, standby := pair(t)
		defer holder.end()
		defer standby.end()
		holder.set(func(h *link) { h.late = 1500 * time.Millisecond })
		time.Sleep(10 * renews)
		holder.set(func(h *link) { h.late = 3200 * time.Millisecond })
		time.Sleep(60 * renews)
		synctest.Wait()
		if !standby.acts() || holder.acts() || holder.terms() == 0 {
			t.Errorf("the standby acts: %t, the holder acts: %t, and has ended %d terms", standby.acts(), holder.acts(), holder.terms())
		}
	})
}

// TestNoLeaseLastsForEver: another holder's Lease counts for a bounded time, whatever it says.
func TestNoLeaseLastsForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seconds *int32
		want    time.Duration
	}{"68 years": {new(int32(1<<31 - 1)), 5 * time.Minute}, "none": {nil, lasts}, "nothing": {new(int32(0)), lasts}, "less": {new(int32(-1)), lasts}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{lease: &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", ResourceVersion: "0"}, Spec: coordination.LeaseSpec{
					HolderIdentity: new("x"), LeaseDurationSeconds: c.seconds, RenewTime: &metav1.MicroTime{Time: time.Now()},
				}}}
				began := time.Now()
				standby := s.process(t, "standby")
				defer standby.end()
				if took := (<-standby.began).Sub(began); took < c.want || took > c.want+moment {
					t.Errorf("the standby acts after %s, want %s", took, c.want)
				}
			})
		})
	}
}
