package engine

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// retries notes when a message is asked for again; zero for never.
type retries struct {
	after time.Duration
	acked bool
}

func (r *retries) Ack() error                             { r.acked = true; return nil }
func (r *retries) NakWithDelay(delay time.Duration) error { r.after = delay; return nil }
func (r *retries) TermWithReason(string) error            { return nil }
func (r *retries) InProgress() error                      { return nil }

// TestWhatOvertakesItsSubmissionWaits: a cancellation comes again for an hour, other requests
// for some seconds, and then each is kept as a dead letter. NATS' count of deliveries begins
// again with each term, so the hour is by the message's own time.
func TestWhatOvertakesItsSubmissionWaits(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0)
	cancel, hold := &event.WorkloadCancel{Workload: id}, &event.WorkloadHold{Workload: id, By: "me"}
	tests := map[string]struct {
		asked     event.Payload
		age       time.Duration
		attempts  uint64
		others    int           // cancellations of the queue that wait
		want      time.Duration // zero for a dead letter
		announced bool          // an event reports that it waits
	}{
		"a cancellation that just came":          {cancel, 0, 1, 0, requestRetryAfter, false},
		"a cancellation that does not just come": {cancel, 2 * time.Second, waitsFrom, 0, requestRetryAfter, true},
		"a cancellation whose event was lost":    {cancel, 2 * time.Second, waitsFrom + 1, 0, requestRetryAfter, true},
		"a cancellation after a minute":          {cancel, time.Minute, 30, 0, cancelRetryMost, false},
		"a cancellation just before the hour":    {cancel, cancelPatience - time.Second, 400, 0, cancelRetryMost, false},
		"a cancellation after the hour":          {cancel, cancelPatience, 400, 0, 0, false},
		"a cancellation by a clock that is late": {cancel, -time.Minute, 1, 0, requestRetryAfter, false},
		"a hold":                                 {hold, 0, waitsFrom, 0, requestRetryAfter, false},
		"a hold after ten tries":                 {hold, 5 * time.Second, requestRetries + 1, 0, 0, false},
		"the last one that may wait":             {cancel, time.Minute, 30, earlyMost - 1, cancelRetryMost, false},
		"one too many, at first":                 {cancel, time.Second, 3, earlyMost, requestRetryAfter, false},
		"one too many":                           {cancel, time.Minute, 30, earlyMost, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead := 0
			var events []*event.RequestWaits
			step := &Step{
				State: state.New(1, state.Stored{}), Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
				DeadLetter: func(context.Context, bus.Delivery, string) { dead++ }, early: earlyRequests{},
				Publish: func(_ context.Context, subject, _ string, payload event.Payload) error {
					waits, _ := payload.(*event.RequestWaits)
					if events = append(events, waits); subject != event.EventsSubject("q", id) {
						t.Errorf("an event on %s", subject)
					}
					return nil
				},
			}
			for i := range test.others {
				step.early.waits(bus.Delivery{Subject: event.WorkloadSubject("q"), Data: []byte{byte(i)}}, now)
			}
			step.early.waits(bus.Delivery{Subject: event.WorkloadSubject("of another queue")}, now)
			encoded, err := event.Marshal("1", "test", now, "", test.asked)
			if err != nil {
				t.Fatal(err)
			}
			got := &retries{}
			d := bus.Delivery{Subject: event.WorkloadSubject("q"), Data: encoded, Stored: now.Add(-test.age), Attempts: test.attempts}.SettledBy(got)
			settle, err := step.applyBatch(t.Context(), []bus.Delivery{d}, now)
			if err != nil || len(settle) != 1 {
				t.Fatalf("%d messages are settled: %v", len(settle), err)
			}
			settle[0]()
			if got.after != test.want || got.acked || (dead == 1) != (test.want == 0) {
				t.Errorf("it comes again after %s, and %d are given up; want %s", got.after, dead, test.want)
			}
			if test.announced != (len(events) == 1) || test.announced && (events[0].Workload != id || events[0].Queue != "q" || !events[0].Until.Equal(d.Stored.Add(cancelPatience))) {
				t.Errorf("events say %+v; want one: %v", events, test.announced)
			}
			if !step.State.Flush().Empty() || step.decisions.Size() != 0 {
				t.Error("what changes nothing is recorded")
			}
		})
	}
}

// TestEarlyRequestsThatAreGoneMakeRoom: what was purged from NATS comes no more, and keeps no
// other from waiting.
func TestEarlyRequestsThatAreGoneMakeRoom(t *testing.T) {
	t.Parallel()
	early, now := earlyRequests{}, time.Unix(1_800_000_000, 0)
	for i := range earlyMost {
		early.waits(bus.Delivery{Data: []byte{byte(i)}}, now)
	}
	one := bus.Delivery{Data: []byte("one more")}
	if early.waits(one, now.Add(cancelRetryMost)) {
		t.Error("more wait than may")
	}
	if !early.waits(one, now.Add(11*cancelRetryMost)) {
		t.Error("what comes no more keeps others from waiting")
	}
}

// allKnown is an archive that has each workload as one that waits.
type allKnown struct{}

func (allKnown) Known(_ context.Context, ids []workload.ID) (map[workload.ID]state.Known, error) {
	known := map[workload.ID]state.Known{}
	for _, id := range ids {
		known[id] = state.Known{Digest: "d", Phase: workload.Queued}
	}
	return known, nil
}

// TestARequestForAWorkloadThatCannotBeReadIsKept: what is asked of a live workload whose row cannot
// be read is kept as a dead letter. Nothing is asked of one that has ended.
func TestARequestForAWorkloadThatCannotBeReadIsKept(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0)
	for name, unread := range map[string][]state.Quarantined{
		"it has ended": nil, "it cannot be read": {{Workload: id, Level: state.QuarantineFrozen, Tries: 1, Why: "its row cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dead []string
			step := &Step{
				State: state.New(1, state.Stored{MaxEvent: 1 << 20, Unread: unread}), Archive: allKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
				DeadLetter: func(_ context.Context, _ bus.Delivery, reason string) { dead = append(dead, reason) },
			}
			encoded, err := event.Marshal("1", "test", now, "", &event.WorkloadCancel{Workload: id})
			if err != nil {
				t.Fatal(err)
			}
			got := &retries{}
			settle, err := step.applyBatch(t.Context(), []bus.Delivery{bus.Delivery{Subject: event.WorkloadSubject("q"), Data: encoded, Stored: now}.SettledBy(got)}, now)
			if err != nil || len(settle) != 1 {
				t.Fatalf("%d messages are settled: %v", len(settle), err)
			}
			settle[0]()
			if got.acked != (unread == nil) || len(dead) != len(unread) {
				t.Errorf("the cancellation is acknowledged: %t, and given up because of %q", got.acked, dead)
			}
		})
	}
}
