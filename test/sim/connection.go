package sim

import (
	"context"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
)

// connection is NATS as the services' steps use it, for the machine that runs.
type connection struct {
	w           *World
	reconnected chan struct{}
}

// PublishEncoded sends a message.
func (c *connection) PublishEncoded(subject, id string, encoded []byte, _ time.Duration) (bus.Published, error) {
	return c.w.net.publish(subject, id, encoded, nil)
}

// PublishAfter sends a message behind a given one of its subject.
func (c *connection) PublishAfter(subject, id string, encoded []byte, _ time.Duration, last uint64) (bus.Published, error) {
	return c.w.net.publish(subject, id, encoded, func(s *stream) bool { return s.lastOf(subject) == last })
}

// PublishNext sends a message behind a given one of its stream.
func (c *connection) PublishNext(subject, id string, encoded []byte, _ time.Duration, end bus.End) (bus.Published, error) {
	return c.w.net.publish(subject, id, encoded, func(s *stream) bool {
		return s.last == end.Sequence && (end.ID == "" || s.lastID == end.ID)
	})
}

// EnsureStreams makes the streams that are missing.
func (c *connection) EnsureStreams(context.Context) error {
	return c.w.call(natsServer, "EnsureStreams", func() error {
		c.w.net.ensure()
		return nil
	})
}

// StepDown does nothing: one server plays NATS.
func (c *connection) StepDown(context.Context, string) (bool, error) { return false, nil }

// State returns the state of a stream.
func (c *connection) State(_ context.Context, name string) (state bus.StreamState, err error) {
	err = c.w.call(natsServer, "State", func() error {
		s := c.w.net.streams[name]
		if s == nil {
			return bus.ErrNoStream
		}
		state = bus.StreamState{Created: s.created, Last: s.last, First: s.last + 1, Begin: s.begin}
		if len(s.messages) > 0 {
			state.First, state.Oldest = s.messages[0].Sequence, s.messages[0].Stored
		} else if s.bare {
			state.Begin = state.First // the server has lost the files, and what it had with them
		}
		return nil
	})
	return state, err
}

// Subjects lists the subjects that have a message.
func (c *connection) Subjects(_ context.Context, name, filter string) (map[string]bool, error) {
	subjects := map[string]bool{}
	err := c.w.call(natsServer, "Subjects", func() error {
		s := c.w.net.streams[name]
		if s == nil {
			return bus.ErrNoStream
		}
		for _, m := range s.messages {
			if strings.HasPrefix(m.Subject, strings.TrimRight(filter, ">*")) {
				subjects[m.Subject] = true
			}
		}
		return nil
	})
	return subjects, err
}

// LastMessage reads the last message of a subject.
func (c *connection) LastMessage(_ context.Context, name, subject string) (last *bus.Delivery, err error) {
	err = c.w.call(natsServer, "LastMessage", func() error {
		s := c.w.net.streams[name]
		if s == nil {
			return bus.ErrNoStream
		}
		for _, m := range s.messages {
			if m.Subject == subject {
				last = &m
			}
		}
		return nil
	})
	return last, err
}

// values reads the last values of subjects.
func (c *connection) values(name, prefix string) (values []bus.Delivery, err error) {
	err = c.w.call(natsServer, "LastValues", func() error {
		s := c.w.net.streams[name]
		if s == nil {
			return bus.ErrNoStream
		}
		for _, m := range s.messages {
			if strings.HasPrefix(m.Subject, prefix) {
				values = append(values, m)
			}
		}
		return nil
	})
	return values, err
}

// Reconnected is not used by steps: who runs them says when.
func (c *connection) Reconnected() (<-chan struct{}, func()) { return c.reconnected, func() {} }
