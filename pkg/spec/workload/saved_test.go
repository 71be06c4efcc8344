package workload

import (
	"testing"
	"time"
)

// TestSavedKeepsTheLongestTimeBetween: the time between two attempts is none, and what is
// seen makes the interval shorter only.
func TestSavedKeepsTheLongestTimeBetween(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	minutes := func(n int) Duration { return Duration(time.Duration(n) * time.Minute) }
	type report struct{ attempt, minute int }
	for name, c := range map[string]struct {
		reports        []report
		longest        Duration
		declared, want Duration
	}{
		"none":                 {nil, 0, minutes(30), minutes(30)},
		"one":                  {[]report{{1, 0}}, 0, minutes(30), minutes(30)},
		"too few":              {[]report{{1, 0}, {1, 5}, {1, 10}}, minutes(5), minutes(30), minutes(30)},
		"enough":               {[]report{{1, 0}, {1, 5}, {1, 12}, {1, 15}}, minutes(7), minutes(30), minutes(7)},
		"longer than declared": {[]report{{1, 0}, {1, 50}, {1, 60}, {1, 70}}, minutes(50), minutes(30), minutes(30)},
		"nothing declared":     {[]report{{1, 0}, {1, 5}, {1, 10}, {1, 15}}, minutes(5), 0, 0},
		"two attempts":         {[]report{{1, 0}, {1, 5}, {2, 500}, {2, 503}}, minutes(5), minutes(30), minutes(5)},
		"each in its attempt":  {[]report{{1, 0}, {2, 5}, {3, 10}, {4, 15}}, 0, minutes(30), minutes(30)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *Saved
			for _, r := range c.reports {
				s = s.Next(r.attempt, begin.Add(time.Duration(r.minute)*time.Minute))
			}
			if got := s.Interval(SecondsOf(c.declared)); got != c.want {
				t.Errorf("the interval is %s, want %s", time.Duration(got), time.Duration(c.want))
			}
			if len(c.reports) == 0 {
				return
			}
			last := c.reports[len(c.reports)-1]
			if want := (Saved{last.attempt, begin.Add(time.Duration(last.minute) * time.Minute), len(c.reports), c.longest}); *s != want {
				t.Errorf("noted is %+v, want %+v", *s, want)
			}
			if !s.Last(last.attempt).Equal(s.At) || !s.Last(last.attempt+1).IsZero() {
				t.Errorf("the last of attempt %d is %s, of the next one %s", last.attempt, s.Last(last.attempt), s.Last(last.attempt+1))
			}
		})
	}
}

func TestSavedCountsUpToItsMost(t *testing.T) {
	t.Parallel()
	s := &Saved{Attempt: 1, Count: savedCounted}
	if got := s.Next(1, s.At.Add(time.Hour)).Count; got != savedCounted {
		t.Errorf("%d are counted, want %d", got, savedCounted)
	}
}
