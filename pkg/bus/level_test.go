package bus

import (
	"testing"
	"time"
)

// When messages of a subject are dropped that has more than its part.
func TestFlooded(t *testing.T) {
	t.Parallel()
	const part, mean = 80, 1 // so growth by more than 10 messages is a flood
	at := time.Unix(1000, 0)
	before := level{messages: 100, settled: 5, at: at}
	for name, c := range map[string]struct {
		messages uint64
		settled  int64
		read     time.Duration // since the reader settled any message
		after    time.Duration
		want     bool
	}{
		"grows a little": {110, 5, 0, heldAfter, false},
		"grows by more than an eighth of its part":     {111, 5, readWithin, time.Millisecond, true},
		"grows while nothing is read":                  {1000, 5, readWithin + 1, time.Hour, false},
		"is read down":                                 {99, 50, 0, time.Hour, false},
		"is read, and as large as it was":              {100, 6, 0, heldAfter, true},
		"is read, and as large as it was a moment ago": {100, 6, 0, heldAfter - 1, false},
		"is as large as it was, and its turn may come": {100, 5, 0, readWithin, false},
		"is as large as it was, while others are read": {100, 5, 0, readWithin + 1, true},
		"is as large as it was, while nothing is read": {100, 5, readWithin + 1, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := at.Add(c.after)
			if got := before.flooded(c.messages, c.settled, now.Add(-c.read), now, mean, part); got != c.want {
				t.Errorf("flooded: %t, want %t", got, c.want)
			}
		})
	}
}
