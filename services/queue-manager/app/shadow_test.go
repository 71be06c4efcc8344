package app_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"muster.dev/muster/services/queue-manager/replay"
)

// found is what a shadow has reported.
type found struct {
	mu            sync.Mutex
	same, skipped int
	differences   []replay.Difference
}

func (f *found) watch() replay.Watch {
	return replay.Watch{
		Decided: func(time.Time) { f.count(func() { f.same++ }) },
		Skipped: func() { f.count(func() { f.skipped++ }) },
		Differs: func(d replay.Difference, _ bool) { f.count(func() { f.differences = append(f.differences, d) }) },
	}
}

func (f *found) count(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// until waits for what a shadow finds.
func (f *found) until(t *testing.T, what string, wanted func() bool) {
	t.Helper()
	deadline := time.After(3 * patience)
	for {
		f.mu.Lock()
		is := wanted()
		f.mu.Unlock()
		if is {
			return
		}
		select {
		case <-deadline:
			f.mu.Lock()
			defer f.mu.Unlock()
			t.Fatalf("not within %s: %s; %d the same, %d skipped, differences %+v", 3*patience, what, f.same, f.skipped, f.differences)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestAShadowRepeatsDecisions: a shadow of the same release finds no difference, also over a
// change of leader; a record that says something else is a difference, after which it skips
// decisions and goes on with the next term.
func TestAShadowRepeatsDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 8)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	f, ended := &found{}, make(chan error, 1)
	go func() { ended <- replay.Shadow(ctx, w.config.DatabaseURL, 50*time.Millisecond, f.watch()) }()
	w.live(6, rand.New(rand.NewPCG(7, 7)), "first")
	w.stopReplayable()
	w.start()
	w.live(4, rand.New(rand.NewPCG(8, 8)), "second")
	w.stopReplayable()

	conn, err := pgx.Connect(t.Context(), w.config.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var decisions int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM decisions`).Scan(&decisions); err != nil {
		t.Fatal(err)
	}
	f.until(t, "all decisions are repeated", func() bool { return f.same+f.skipped+len(f.differences) >= decisions })
	f.count(func() {
		if f.same != decisions || len(f.differences) > 0 {
			t.Errorf("of %d decisions %d came out the same, %d were skipped, and differences are %+v", decisions, f.same, f.skipped, f.differences)
		}
	})
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the shadow ended with %v", err)
	}
	w.shadowGoesOn()
}

// shadowGoesOn has the record say something that was not decided.
func (w *world) shadowGoesOn() {
	w.t.Helper()
	w.asOwner(`UPDATE decisions SET outcome = $1 WHERE (epoch, number) = (SELECT epoch, number FROM decisions WHERE number = 2 ORDER BY epoch DESC LIMIT 1)`,
		s2.Encode(nil, []byte(`{"workload":{"id":"x","phase":"admitted"}}`+"\n")))
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	f, ended := &found{}, make(chan error, 1)
	go func() { ended <- replay.Shadow(ctx, w.config.DatabaseURL, 50*time.Millisecond, f.watch()) }()
	f.until(w.t, "the changed decision is a difference", func() bool { return len(f.differences) == 1 })
	w.start()
	var before int
	f.count(func() { before = f.same })
	w.live(3, rand.New(rand.NewPCG(9, 9)), "third")
	f.until(w.t, "decisions of the next term are repeated", func() bool { return f.same > before+3 })
	f.count(func() {
		if len(f.differences) != 1 || f.differences[0].Class() != replay.DiffWorkload {
			w.t.Errorf("differences are %+v, want the changed decision", f.differences)
		}
	})
	stop()
	<-ended
}
