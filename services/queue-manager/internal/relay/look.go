package relay

import (
	"context"
	"errors"

	"muster.dev/muster/pkg/bus"
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
	before := p.looked
	p.looked = state
	end, known := endOf(state), p.watermark
	if !end.Created.Equal(known.Created) || end.Last < known.Last || allGone(before, state) {
		return p.compare(ctx)
	}
	return nil
}

// allGone reports whether a stream that had something has nothing of that any more, as after
// a purge.
func allGone(before, now bus.StreamState) bool {
	return before.Created.Equal(now.Created) && before.First <= before.Last && before.Last > 0 && now.First > before.Last
}
