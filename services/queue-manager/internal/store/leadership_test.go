package store_test

import (
	"context"
	"testing"
	"time"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// takeOver is how long a successor may wait for a leader that says nothing.
const takeOver = 15 * time.Second

// A process that is paused keeps its connections open: its kernel answers for it.
func TestASilentLeaderIsReplacedAndOneThatSpeaksIsNot(t *testing.T) {
	t.Parallel()
	l := open(t) // leads, and nothing speaks for it
	ctx, cancel := context.WithTimeout(t.Context(), takeOver)
	defer cancel()
	successor, err := l.Lead(ctx, "successor", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer successor.End()
	if successor.Epoch <= l.term.Epoch {
		t.Errorf("the successor has epoch %d, the leader before had %d", successor.Epoch, l.term.Epoch)
	}
	if successor.Before != l.term.Epoch {
		t.Errorf("the successor follows epoch %d, the leader before had %d", successor.Before, l.term.Epoch)
	}
	if err := l.term.Keep(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the old leader does not notice that its session is gone: %v", err)
	}

	speaking, quiet := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- successor.Keep(speaking) }()
	led := make(chan *store.Leadership, 1)
	go func() {
		third, err := l.Lead(ctx, "third", silence, func() {})
		if err != nil {
			t.Error(err)
		}
		led <- third
	}()
	select {
	case <-led:
		t.Error("a leader that speaks was replaced")
	case err := <-kept:
		t.Errorf("a leader that speaks lost its session: %v", err)
	case <-time.After(2 * silence): // that nothing happens is what is tested
	}
	quiet()
	<-kept
	if third := <-led; third != nil {
		third.End()
	}
}
