package bus

import (
	"context"
	"time"
)

// counted counts the messages that do not come again.
type counted struct {
	Settler
	reading *reading
	subject string
}

func (c counted) Ack() error {
	c.reading.settle(c.subject, time.Now())
	return c.Settler.Ack()
}

func (c counted) TermWithReason(reason string) error {
	c.reading.settle(c.subject, time.Now())
	return c.Settler.TermWithReason(reason)
}

// count has subjects looked for after each number of messages, and waits for it: however
// fast those that are known bring messages, another one is found after as many.
func (l *lanes) count(ctx context.Context) {
	if l.handed.Add(1)%lookEach != 0 {
		return
	}
	done := make(chan struct{})
	select {
	case l.look <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}
