package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// settled notes what becomes of a message.
type settled struct{ what []string }

func (s *settled) note(what string) error                 { s.what = append(s.what, what); return nil }
func (s *settled) Ack() error                             { return s.note("ack") }
func (s *settled) NakWithDelay(delay time.Duration) error { return s.note("retry " + delay.String()) }
func (s *settled) TermWithReason(string) error            { return s.note("reject") }
func (s *settled) InProgress() error                      { return nil }

// Each submission that cannot be stored gets an answer of its own, and is kept once it
// has one: NATS takes the same message once in two minutes, and an answer that could
// not be published is owed still.
func TestEachRejectionIsAnswered(t *testing.T) {
	t.Parallel()
	submission, err := event.New("1", "test", time.Now(), &event.WorkloadSubmitted{Workload: workload.Workload{ID: event.WorkloadID("test", "w"), Queue: "q"}})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := submission.Encode()
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("NATS is away")
	for name, c := range map[string]struct {
		sequence, attempts uint64
		err                error
		want               string
		poisoned           bool
	}{
		"published":                     {7, 1, nil, "dead-lettered", true},
		"another one":                   {8, 1, nil, "dead-lettered", true},
		"published when delivered late": {9, 3, nil, "dead-lettered", true},
		"not published":                 {10, 1, away, "retry 5s", false},
		"not published for long":        {11, 5, away, "dead-lettered", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &settled{}
			step := &Step{
				Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
				DeadLetter: func(context.Context, bus.Delivery, string) { _ = s.note("dead-lettered") },
			}
			d := bus.Delivery{Subject: "s", Data: encoded, Sequence: c.sequence, Attempts: c.attempts, Stored: time.Unix(1, 2)}.SettledBy(s)
			memory, ids := NewMemory(), []string{}
			step.Reject(t.Context(), Refused{d, errors.New("no")}, memory, func(id string, _ *event.WorkloadRejected) error {
				ids = append(ids, id)
				return c.err
			})
			if !slices.Equal(s.what, []string{c.want}) {
				t.Errorf("the message was settled as %q, want %q", s.what, c.want)
			}
			if _, is := memory.poison.cause(d); is != c.poisoned {
				t.Errorf("that it is given up is remembered: %t", is)
			}
			d.Sequence++
			step.Reject(t.Context(), Refused{d, errors.New("no")}, memory, func(id string, _ *event.WorkloadRejected) error {
				ids = append(ids, id)
				return nil
			})
			if len(ids) != 2 || ids[0] == ids[1] {
				t.Errorf("the answers to two submissions have the ids %q", ids)
			}
		})
	}
}
