package query_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
)

// busy refuses the first questions.
type busy struct {
	refused, asked int
	refusal        error
}

func (b *busy) Ask(context.Context, string, []byte) ([]byte, error) {
	if b.asked++; b.asked <= b.refused {
		return nil, b.refusal
	}
	return []byte("{}"), nil
}

// TestAPatientClientAsksAgain: a question that queue-manager is busy with is asked again; what
// is refused for good, or changes something, is not.
func TestAPatientClientAsksAgain(t *testing.T) {
	t.Parallel()
	status := func(c *query.Client) error { _, err := c.Status(t.Context()); return err }
	configure := func(c *query.Client) error {
		_, err := c.Configure(t.Context(), "", query.ConfigureRequest{})
		return err
	}
	for name, test := range map[string]struct {
		refusal error
		ask     func(*query.Client) error
		asked   int
		answers bool
	}{
		"busy":        {query.Busy("the status is being asked for; try again"), status, 3, true},
		"busy long":   {query.BusyFor("your what-ifs have taken 28s", time.Minute), status, 1, false},
		"refused":     {&query.ProblemError{Message: "no"}, status, 1, false},
		"nobody":      {query.ErrNoAnswer, status, 1, false},
		"busy change": {query.Busy("try again"), configure, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &busy{refused: 2, refusal: test.refusal}
			err := test.ask(query.NewClientOver(b).Patient())
			if (err == nil) != test.answers || b.asked != test.asked || err != nil && !errors.Is(err, test.refusal) {
				t.Errorf("asked %d times, %v; want %d times", b.asked, err, test.asked)
			}
		})
	}
}
