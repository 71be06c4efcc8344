package bus

import (
	"errors"
	"muster.dev/muster/pkg/message/event"
	"testing"
)

// A publisher that does not wait for answers says what its message is to follow; the
// server takes it nowhere else, not even where others have brought the stream to the
// sequence that was expected.
func TestAMessageIsTakenOnlyWhereTheStreamEnds(t *testing.T) {
	t.Parallel()
	b := connectInside(t)
	empty, err := b.State(t.Context(), EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		id   string
		end  End
		want error
	}{
		{"early", End{Sequence: 1}, ErrOvertaken},
		{"first", End{}, nil},
		{"late", End{}, ErrOvertaken},
		{"of another", End{Sequence: 1, ID: "never stored"}, ErrOvertaken},
		{"second", End{Sequence: 1, ID: "first"}, nil},
		{"third", End{Sequence: 2}, nil},
		{"first", End{Sequence: 3}, nil}, // it is there already
	} {
		published, err := b.PublishNext(event.EventsSubject("q", "w"), step.id, []byte(`{}`), 0, End{Sequence: empty.Last + step.end.Sequence, ID: step.end.ID})
		if err == nil {
			err = published.Wait(t.Context())
		}
		if !errors.Is(err, step.want) {
			t.Errorf("%s behind %+v: %v, want %v", step.id, step.end, err, step.want)
		}
	}
	state, err := b.State(t.Context(), EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	if had := state.Last - empty.Last; had != 3 {
		t.Errorf("the stream has had %d messages, want 3", had)
	}
}
