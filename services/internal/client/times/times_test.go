package times

import (
	"testing"
	"time"
)

func TestTimesAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "24h": now.Add(-24 * time.Hour), "7d": now.AddDate(0, 0, -7), "2026-01-02": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		"2026-01-02T03:04:05Z": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := Parse(text, now); err != nil || !got.Equal(want) {
				t.Errorf("%q is %s, %v; want %s", text, got, err, want)
			}
		})
	}
	for _, text := range []string{"yesterday", "-1h", "99999999999d", "7 d"} {
		if got, err := Parse(text, now); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}
