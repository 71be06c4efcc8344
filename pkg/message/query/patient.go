package query

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// A question that is refused because too much is being asked is asked again, after a pause
// of busyPause to twice that, until busyMost have passed.
const (
	busyPause = 150 * time.Millisecond
	busyMost  = 5 * time.Second
)

// Patient returns a client that asks again while queue-manager is busy with the same question
// of another. What changes something is asked once.
func (c *Client) Patient() *Client { return &Client{patient{c.transport}} }

type patient struct{ Transport }

// Ask implements Transport.
func (p patient) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	for began := time.Now(); ; {
		answer, err := p.Transport.Ask(ctx, subject, data)
		var problem *ProblemError
		if !errors.As(err, &problem) || !problem.Busy || subject == ConfigureSubject || subject == HoldSubject || time.Since(began)+problem.After > busyMost {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(busyPause + rand.N(busyPause)):
		}
	}
}
