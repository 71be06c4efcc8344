package relay

import (
	"context"
	"sync/atomic"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// resend is what is known of a stream of commands that has lost some of them: those that it has
// may be old until the leader has committed all commands once more. The ledger has a note of that,
// because the leader takes many commits for it, and who comes after it is to go on.
type resend struct {
	noted bool // the ledger has the note
	// handed counts the times in this term that the leader was told, done is up to which of them
	// it has committed what it was told to.
	handed int64
	done   atomic.Int64
}

// resendNote is the name of the note, beside those of streams. Its watermark ends at 1 while commands
// are to be sent again, and at 0 afterwards.
func resendNote(stream string) string { return stream + "/resend" }

// setResendNote notes whether commands are to be sent again. When the database refuses the note,
// only this term remembers it.
func (p *publisher) setResendNote(ctx context.Context, due bool) error {
	if p.resend.noted == due {
		return nil
	}
	note := store.Watermark{Created: neverMade()}
	if due {
		note.Last = 1
	}
	err := p.Store.SetWatermark(ctx, p.Epoch, resendNote(p.stream), note)
	if store.Suspect(err) {
		p.refuse("mark", "cannot note whether commands are to be sent again; the next term may not know it", err)
		err = nil
	}
	if err == nil {
		p.resend.noted = due
	}
	return err
}

// DistrustCommands has terms send all commands again, from this one on, until one has sent those of
// all workloads. It is for a term that finds commands which the ledger does not know, before its
// relay runs.
func DistrustCommands(ctx context.Context, to WatermarkStore, epoch int64) error {
	return to.SetWatermark(ctx, epoch, resendNote(bus.DispatchStream), store.Watermark{Created: neverMade(), Last: 1})
}

// distrusted adds to what was found that the commands in the stream may be old, because it has
// lost some now, or in a term before this one that did not come to send all of them again.
func (p *publisher) distrusted(ctx context.Context, found CommandsFound, lost bool) (CommandsFound, error) {
	if !lost && (!p.resend.noted || p.resend.handed > 0) {
		return found, nil
	}
	if err := p.setResendNote(ctx, true); err != nil {
		return found, err
	}
	p.resend.handed++
	handed := p.resend.handed
	found.Distrust, found.Committed = true, func() { p.resend.done.Store(handed) }
	return found, nil
}

// endResend removes the note once the leader has committed what it was told to last.
func (p *publisher) endResend(ctx context.Context) error {
	if p.resend.handed == 0 || p.resend.done.Load() != p.resend.handed {
		return nil
	}
	return p.setResendNote(ctx, false)
}
