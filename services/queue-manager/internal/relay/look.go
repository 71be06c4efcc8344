package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// look compares the stream with the ledger when its state alone shows that it has lost
// something: an operator may remove or purge a stream while the connection stands and
// nothing is published that would reveal it, and another service may make it again first.
// It costs the server one small answer. What was deleted from the middle of a stream is left
// to the thorough comparison.
func (p *publisher) look(ctx context.Context) error {
	state, err := p.Bus.State(ctx, p.stream)
	switch {
	case errors.Is(err, bus.ErrNoStream):
		return p.compare(ctx)
	case err != nil:
		return ctx.Err() // NATS is away; a reconnection compares
	}
	gone := allGone(p.looked, state)
	if !p.lastOnly() {
		p.gone = p.gone || gone || p.first > 0 && state.First > p.first
		gone = p.gone
	}
	p.looked = state
	end, known := endOf(state), p.watermark
	if !end.Created.Equal(known.Created) || end.Last < known.Last || gone {
		return p.compare(ctx)
	}
	return nil
}

// allGone reports whether a stream that had something has nothing of that any more, as after
// a purge.
func allGone(before, now bus.StreamState) bool {
	return before.Created.Equal(now.Created) && before.First <= before.Last && before.Last > 0 && now.First > before.Last
}

// historyAge bounds the events that the stream must have: it drops those of bus.EventsKept.
const historyAge = bus.EventsKept - time.Hour

// emptied reports whether the stream of events has lost all that it had, by a purge: it is
// the same stream and as long as before. Events that have expired leave the same state, so the
// ledger decides.
func (p *publisher) emptied(ctx context.Context, state bus.StreamState) (bool, error) {
	known := p.watermark
	switch {
	case p.lastOnly(): // its subjects are compared one by one
		return false, nil
	case known.Created.Equal(emptyAgain()): // it was found earlier, and is not filled yet
		return true, nil
	case !endOf(state).Created.Equal(known.Created) || known.Last < state.Begin: // it had nothing
		return false, nil
	case !p.gone && state.First <= known.Last:
		return false, nil
	}
	return p.lacksHistory(ctx, state)
}

// lacksHistory reports whether the stream does not have the oldest event that it must have.
// An event in the outbox was not published yet.
func (p *publisher) lacksHistory(ctx context.Context, state bus.StreamState) (bool, error) {
	var oldest []store.HistoryEvent
	for after, last := int64(0), int64(0); len(oldest) == 0; after = last {
		var err error
		if oldest, last, err = p.Store.HistorySince(ctx, after, historyAge, 1); err != nil {
			return false, err
		}
		if len(oldest) == 0 && (last == 0 || last == after) {
			return false, nil
		}
	}
	waiting, err := p.Store.Unsent(ctx, p.prefixes, 0, batchLimit)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(waiting, func(m store.Outgoing) bool { return m.EventID == oldest[0].EventID }) {
		return false, nil
	}
	return state.First > state.Last || oldest[0].At.Before(state.Oldest), nil
}
