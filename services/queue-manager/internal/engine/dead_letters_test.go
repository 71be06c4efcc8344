package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/spec/workload"
)

// letters keeps dead letters, but for those with an error.
type letters struct {
	mu      sync.Mutex
	refused map[string]error
	ledger  error // why the ledger refuses
	kept    []string
	inTable []string
}

func (l *letters) KeepUndelivered(_ context.Context, d bus.Delivery, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ledger == nil {
		l.inTable = append(l.inTable, d.Subject)
	}
	return l.ledger
}

func (l *letters) StoreDeadLetter(_ context.Context, d bus.Delivery, _ string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refused[d.Subject]; err != nil {
		return err
	}
	l.kept = append(l.kept, d.Subject)
	return nil
}

// has returns what is kept by now.
func (l *letters) has() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

// accept has everything be kept from now on.
func (l *letters) accept() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = nil
}

// A term that cannot name what is lost does not go on: its relay would note that the
// streams have nothing that the ledger does not know. A letter that NATS does not take
// is kept in the ledger, and one that the ledger never takes either ends no term.
func TestATermNamesWhatIsLostOrEnds(t *testing.T) {
	t.Parallel()
	lost := func(id string) Lost {
		return Lost{Record: workload.Record{Workload: workload.Workload{ID: workload.ID(id)}}, Delivery: bus.Delivery{Subject: id}}
	}
	r := Recovered{Ended: []Lost{lost("ended"), lost("ended too")}, Lost: []Lost{lost("lost"), lost("lost too")}}
	away, never := errors.New("NATS is away"), fmt.Errorf("%w: too large", bus.ErrNotKept)
	two := map[string]error{"ended": never, "lost": never}
	gone, unstorable := errors.New("Postgres is away"), &pgconn.PgError{Code: "22P05"}
	for name, c := range map[string]struct {
		refused       map[string]error
		ledger, want  error
		kept, inTable []string
		again         int // letters that are tried again
	}{
		"all are kept":                     {kept: []string{"ended", "ended too", "lost", "lost too"}},
		"no answer for one that has ended": {refused: map[string]error{"ended": away}, want: away},
		"no answer for one that is lost":   {refused: map[string]error{"lost too": away}, want: away, kept: []string{"ended", "ended too", "lost"}},
		"two are refused":                  {refused: two, kept: []string{"ended too", "lost too"}, inTable: []string{"ended", "lost"}, again: 2},
		"two are refused, and no Postgres": {refused: two, ledger: gone, want: gone},
		"two are refused everywhere":       {refused: two, ledger: unstorable, kept: []string{"ended too", "lost too"}, again: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &letters{refused: c.refused, ledger: c.ledger}
			again, err := (&Step{Logger: zap.NewNop()}).NameLost(t.Context(), r, to)
			if !errors.Is(err, c.want) || !slices.Equal(to.kept, c.kept) {
				t.Errorf("%v, and %q are kept; want %v and %q", err, to.kept, c.want, c.kept)
			}
			if !slices.Equal(to.inTable, c.inTable) || len(again) != c.again {
				t.Errorf("in the table are %q, and %d are tried again; want %q and %d", to.inTable, len(again), c.inTable, c.again)
			}
		})
	}
}

// A letter that the server has refused is kept by it when there is room again.
func TestARefusedLetterIsKeptLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		to := &letters{refused: map[string]error{"one": fmt.Errorf("%w: no room", bus.ErrNotKept)}}
		again := []letter{{bus.Delivery{Subject: "one"}, "why"}, {bus.Delivery{Subject: "two"}, "why"}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			retryLetters(ctx, again, to, zap.NewNop())
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if kept := to.has(); !slices.Equal(kept, []string{"two"}) {
			t.Errorf("without room %q are kept, want the other one, once", kept)
		}
		to.accept()
		time.Sleep(letterMost + time.Minute)
		synctest.Wait()
		if kept := to.has(); !slices.Equal(kept, []string{"two", "one"}) {
			t.Errorf("with room %q are kept, want both, once each", kept)
		}
		cancel()
		<-done
	})
}
