package suite

import (
	"context"
	"errors"
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// withoutQuorum kills two of three NATS servers at once. Nothing can be stored
// then, so no submitter hears that it was: it must try again. When the servers
// are back everything goes on, and nothing that was told before is lost.
func (w *world) withoutQuorum(t *testing.T) {
	w.until(t, "all NATS servers have everything", w.replicated)
	w.load(t, func() {
		for i := range 2 {
			defer w.breaks(t, NATS(i+1), Killed)()
		}
		id := w.submit(t)
		refused := 0
		w.until(t, "the last NATS server says that it can store nothing", func() bool {
			err := w.store(t, id)
			switch {
			case err == nil:
				t.Errorf("one of three NATS servers has stored the submission of gang %s", id)
				return true
			case errors.Is(err, bus.ErrNoStream):
				t.Logf("after %d without an answer: %v", refused, err)
				return true
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("a submitter gets %v, want that there is no answer, or no stream", err)
				return true
			}
			refused++
			return false
		})
	})
}

// beforeCaughtUp kills a NATS server as soon as the one that was away before is
// started, which lacks what was stored meanwhile: it has to get that from the
// third one.
func (w *world) beforeCaughtUp(t *testing.T) {
	w.until(t, "all NATS servers have everything", w.replicated)
	mend := w.breaks(t, NATS(2), Killed)
	w.load(t, func() {}) // what the second server lacks
	mend()
	defer w.breaks(t, NATS(3), Killed)()
	w.load(t, func() {})
}

// store submits a gang and waits until NATS has stored the message.
func (w *world) store(t *testing.T, id workload.ID) error {
	t.Helper()
	w.mu.Lock()
	name := w.submitted[id].name
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	encoded, err := submission(name).Encode()
	if err != nil {
		return err
	}
	published, err := w.bus.PublishEncoded(event.SubmitSubject("default"), event.NewID(), encoded, 0)
	if err != nil {
		return err
	}
	return published.Wait(ctx)
}
