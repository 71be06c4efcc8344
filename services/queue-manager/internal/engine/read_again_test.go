package engine

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

func TestWhatIsReadAgain(t *testing.T) {
	t.Parallel()
	const subject = "muster.capacity.c.synced"
	began := time.Unix(1_800_000_000, 0).UTC()
	at := func(subject string, sequence uint64, after time.Duration) bus.Delivery {
		return bus.Delivery{Subject: subject, Sequence: sequence, Stored: began.Add(after)}
	}
	for name, test := range map[string]struct {
		read []bus.Delivery
		then bus.Delivery
		want bool
	}{
		"the first":                     {nil, at(subject, 7, 0), false},
		"a later one":                   {[]bus.Delivery{at(subject, 7, 0)}, at(subject, 8, time.Second), false},
		"the same":                      {[]bus.Delivery{at(subject, 7, 0)}, at(subject, 7, 0), true},
		"an earlier one":                {[]bus.Delivery{at(subject, 6, 0), at(subject, 7, time.Second)}, at(subject, 6, 0), true},
		"a stream that was lost":        {[]bus.Delivery{at(subject, 7, 0)}, at(subject, 1, time.Minute), false},
		"the clock of NATS is set back": {[]bus.Delivery{at(subject, 7, 0)}, at(subject, 8, -time.Hour), false},
		"another stream":                {[]bus.Delivery{at(subject, 7, 0)}, at(event.StatusSubject("c", "w"), 3, -time.Minute), false},
		"of a queue of work":            {[]bus.Delivery{at(subject, 7, 0)}, at(subject, 7, 0).SettledBy(whatever{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r readTo
			for _, d := range test.read {
				r.again(d)
			}
			if got := r.again(test.then); got != test.want {
				t.Errorf("read again: %t, want %t", got, test.want)
			}
		})
	}
}
