package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
)

// stream is a stream of JetStream.
type stream struct {
	name     string
	created  time.Time
	begin    uint64 // of the first message
	last     uint64
	lastID   string                // of the last message, as long as it is known
	messages []bus.Delivery        // in order of sequence
	ids      map[string]remembered // of messages
	lastOnly bool                  // one message for each subject
	purged   uint64                // up to where it was purged: what was not delivered is lost
	bare     bool                  // it has lost its files
}

// condition is what must hold of a stream for a message to be taken; nil for nothing.
type condition func(*stream) bool

// store takes a message in.
func (n *network) store(subject, id string, data []byte, holds condition) (uint64, error) {
	s := n.streamOf(subject)
	if s == nil {
		return 0, bus.ErrNoStream
	}
	if s.bare {
		return 0, errBare
	}
	if !n.storesIn(s.name) {
		return 0, errFull
	}
	before, known := s.ids[id]
	again := known && n.w.now.Before(before.until)
	if again && n.clustered {
		return before.sequence, nil
	}
	if holds != nil && n.w.Bug != BugUnordered && !holds(s) {
		return 0, bus.ErrOvertaken
	}
	if again {
		return before.sequence, nil
	}
	s.last++
	m := bus.Delivery{
		Subject: subject, Headers: nats.Header{nats.MsgIdHdr: {id}}, Data: data, Stored: n.w.now, Sequence: s.last,
	}
	if s.lastOnly {
		s.messages = slices.DeleteFunc(s.messages, func(old bus.Delivery) bool { return old.Subject == subject })
	}
	s.lastID = id
	s.messages, s.ids[id] = append(s.messages, m), remembered{s.last, n.w.now.Add(remembers)}
	n.w.check.stored(s.name, m)
	for _, r := range slices.Clone(n.readers) {
		r.offer(m)
	}
	if w := n.works[s.name]; w != nil {
		w.offer(m)
	}
	if queue, kept := strings.CutPrefix(subject, workPrefix); kept { // the server republishes it
		n.republish(keptPrefix+queue, id, m)
	}
	return s.last, nil
}

// republish stores a message of one stream in another, with its place in the first.
func (n *network) republish(subject, id string, m bus.Delivery) {
	_, _ = n.store(subject, id, m.Data, nil) // it has no condition that it could break
	for _, copied := range slices.Backward(n.streamOf(subject).messages) {
		if copied.MessageID() == id {
			copied.Headers.Set(jetstream.SequenceHeader, strconv.FormatUint(m.Sequence, 10))
			copied.Headers.Set(jetstream.TimeStampHeaer, m.Stored.Format(time.RFC3339Nano))
			return
		}
	}
}

func (s *stream) lastOf(subject string) uint64 {
	for _, m := range slices.Backward(s.messages) {
		if m.Subject == subject {
			return m.Sequence
		}
	}
	return 0
}

func (s *stream) remove(sequence uint64) {
	s.messages = slices.DeleteFunc(s.messages, func(m bus.Delivery) bool { return m.Sequence == sequence })
}

// publish sends a message on the connection of the machine that runs.
func (n *network) publish(subject, id string, data []byte, holds condition) (bus.Published, error) {
	w, m := n.w, n.w.cur.m
	kind, _, _ := strings.Cut(strings.TrimPrefix(subject, "muster."), ".")
	fault := w.nemesis.draw(m.name+" publish "+kind, LostMessage, DoneButFailed, DoneButFailed, CrashDuring, Delay)
	if fault == Delay {
		n.hold(m.name, w.between(time.Second, 10*time.Second))
	}
	type answer struct {
		sequence uint64
		err      error
	}
	var got *answer
	var waiting *proc
	reply := func(a answer) {
		got = &a
		if waiting != nil {
			w.after(0, waiting.resume)
			waiting = nil
		}
	}
	life := m.life
	if !w.reaches(m, natsServer) || fault == LostMessage {
		w.after(w.between(callPatience/4, callPatience), func() { reply(answer{err: errAway}) })
	} else {
		w.after(n.arrives(m.name), func() {
			if n.down(natsServer) {
				w.after(callPatience, func() { reply(answer{err: errLost}) })
				return
			}
			sequence, err := n.store(subject, id, data, holds)
			if fault == CrashDuring && m.life == life {
				m.crash()
			}
			if fault == DoneButFailed || !w.reaches(m, natsServer) {
				err = errLost
			}
			answers := w.latency()
			if errors.Is(n.heardOf(err), errFull) {
				answers = callPatience // it does not, and the sender gives up
			}
			w.after(answers, func() { reply(answer{sequence, err}) })
		})
	}
	return bus.PublishedBy(func(context.Context) (uint64, error) {
		if got == nil {
			waiting = w.cur
			w.cur.wait()
		}
		m.storage.Note(subject, got.err, w.now)
		return got.sequence, n.heardOf(got.err)
	}), nil
}

// remembered is where a message is, of which a copy is not stored again for a while.
type remembered struct {
	sequence uint64
	until    time.Time
}

// remembers is how long NATS knows a message by its id. It is shorter than in an
// installation, as delays are.
const remembers = 8 * time.Second
