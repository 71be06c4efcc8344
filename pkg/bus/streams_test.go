package bus

import (
	"errors"
	"testing"

	"muster.dev/muster/pkg/message/event"
)

// A stream that is deleted and created again takes no message that expects what the one before
// ended with, however many messages it has got since.
func TestACreatedStreamRepeatsNoSequence(t *testing.T) {
	t.Parallel()
	b := connectInside(t)
	publish := func(t *testing.T, stream string, end End, id string) error {
		t.Helper()
		subject := map[string]string{
			EventsStream: event.EventsSubject("q", "w"), CapacityStream: "muster.capacity.c.x",
			DispatchStream: "muster.dispatch.c.w", StatusStream: "muster.status.c.w",
		}[stream]
		published, err := b.PublishNext(subject, id, []byte(`{}`), 0, end)
		if err == nil {
			err = published.Wait(t.Context())
		}
		return err
	}
	for _, stream := range Streams() {
		if !IsFollowed(stream) {
			continue
		}
		t.Run(stream, func(t *testing.T) {
			before, err := b.State(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
			if _, err := b.ConfigureStreams(t.Context()); err != nil {
				t.Fatal(err)
			}
			again, err := b.State(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			if again.Last <= before.Last {
				t.Errorf("the stream begins behind %d, and the one before behind %d", again.Last, before.Last)
			}
			if err := publish(t, stream, End{Sequence: before.Last}, "late"); !errors.Is(err, ErrOvertaken) {
				t.Errorf("a message that expects the end of the stream before: %v, want a refusal", err)
			}
			if err := publish(t, stream, End{Sequence: again.Last}, "next"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Configuring streams removes no message: a server that gets another beginning of a
// stream purges it up to there.
func TestConfiguredStreamsKeepTheirMessages(t *testing.T) {
	t.Parallel()
	b := connectInside(t)
	want := map[string]StreamState{}
	for stream, subject := range map[string]string{
		EventsStream: event.EventsSubject("q", "w"), CapacityStream: "muster.capacity.c.x",
		DispatchStream: "muster.dispatch.c.w", StatusStream: "muster.status.c.w",
	} {
		published, err := b.PublishEncoded(subject, stream, []byte(`{}`), 0)
		if err == nil {
			err = published.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if want[stream], err = b.State(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.ConfigureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	for stream, had := range want {
		has, err := b.State(t.Context(), stream)
		if err != nil || has != had || has.First != has.Last {
			t.Errorf("%s was %+v and is %+v, %v; want it with its message", stream, had, has, err)
		}
	}
}
