package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// lineageNote is the key of the note in NATS about the history of Postgres that the
// leader writes. A primary that was replaced cannot know it.
const lineageNote = "ledger"

// recoveredNote is the key of the note about the history whose losses a term has found out.
// A process may die after it has noted the history and before it has done that.
const (
	recoveredNote = "ledger-recovered"
	commitMissing = "a commit is missing" // as its value: to be found out again
)

const (
	// primaryEvery is how often the leader looks whether another one writes on a later
	// history.
	primaryEvery = 2 * time.Second
	// oldPrimaryEvery is the shortest time between two lines of the log about a server
	// that is refused.
	oldPrimaryEvery = time.Minute
)

// watchPrimaries counts connections that are refused because their server was
// replaced, and names it.
func watchPrimaries(o Options) {
	var mu sync.Mutex
	var logged time.Time
	o.Store.OnOldPrimary(func(refused error) {
		o.Metrics.oldPrimaries.Inc()
		mu.Lock()
		defer mu.Unlock()
		if time.Since(logged) > oldPrimaryEvery {
			logged = time.Now()
			o.Logger.Error("a replaced Postgres primary accepts connections; fence it", zap.Error(refused))
		}
	})
}

// heedPrimary learns on which history has been written, as far as NATS knows.
func heedPrimary(ctx context.Context, o Options) error {
	if o.AcceptOldPrimary {
		return nil
	}
	_, err := heedNotedLineage(ctx, o)
	return err
}

// heedNotedLineage reads the note, and has the store refuse earlier histories; zero for none.
func heedNotedLineage(ctx context.Context, o Options) (noted store.Lineage, err error) {
	note, err := o.Bus.Note(ctx, lineageNote)
	if err != nil || note == "" {
		return noted, err
	}
	if noted, err = store.ParseLineage(note); err != nil {
		o.Logger.Warn("cannot read the stored lineage of the ledger; ignoring it", zap.Error(err))
		return store.Lineage{}, nil // of a later version
	}
	o.Store.Heed(noted)
	return noted, nil
}

// notePrimary notes on which history this term writes. It reports whether what that has lost
// is still to be found out.
func notePrimary(ctx context.Context, o Options, own store.Lineage) (unrecovered bool, err error) {
	note, err := o.Bus.Note(ctx, lineageNote)
	if err != nil || own.Timeline == 0 {
		return false, err
	}
	recovered, err := o.Bus.Note(ctx, recoveredNote)
	if err != nil {
		return false, err
	}
	unrecovered = cmp.Or(recovered, note, own.String()) != own.String()
	if note == own.String() {
		return unrecovered, nil
	}
	if before, err := store.ParseLineage(note); err == nil {
		o.Logger.Warn("Postgres has another primary; following its timeline", zap.Stringer("before", before), zap.Stringer("now", own))
	}
	return unrecovered, o.Bus.SetNote(ctx, lineageNote, own.String())
}

// noteRecovered notes that it is known what this history has lost.
func noteRecovered(ctx context.Context, o Options, own store.Lineage) error {
	if own.Timeline == 0 {
		return nil
	}
	noted, err := o.Bus.Note(ctx, recoveredNote)
	if err != nil || noted == own.String() {
		return err
	}
	return o.Bus.SetNote(ctx, recoveredNote, own.String())
}

// keepPrimary returns an error when another process leads on a later history: then this
// leader's Postgres was replaced without knowing it. It restores the note when NATS has
// lost it or an old leader has overwritten it.
func keepPrimary(ctx context.Context, o Options, own store.Lineage) error {
	tick := time.NewTicker(primaryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if o.AcceptOldPrimary || own.Timeline == 0 {
			continue
		}
		noted, err := heedNotedLineage(ctx, o)
		if err != nil {
			continue // keepBus ends the term if that goes on
		}
		if noted.System == own.System && noted.Timeline > own.Timeline {
			return fmt.Errorf("%w: this term writes on %s, and another leader on %s", store.ErrOldPrimary, own, noted)
		}
		if noted.Timeline == 0 || noted.System == own.System && noted.Timeline < own.Timeline {
			if err := o.Bus.SetNote(ctx, lineageNote, own.String()); err != nil && ctx.Err() == nil {
				o.Logger.Warn("cannot store the lineage of the ledger; retrying", zap.Error(err), zap.Duration("after", primaryEvery))
			}
		}
	}
}
