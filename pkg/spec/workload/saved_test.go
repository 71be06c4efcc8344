package workload

import (
	"testing"
	"time"

	"pgregory.net/rapid"
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
				at := begin.Add(time.Duration(r.minute) * time.Minute)
				s = s.Next(r.attempt, at, at)
			}
			if got := s.Interval(SecondsOf(c.declared)); got != c.want {
				t.Errorf("the interval is %s, want %s", time.Duration(got), time.Duration(c.want))
			}
			if len(c.reports) == 0 {
				return
			}
			last := c.reports[len(c.reports)-1]
			at := begin.Add(time.Duration(last.minute) * time.Minute)
			if want := (Saved{Attempt: last.attempt, At: at, Count: len(c.reports), Longest: c.longest, Reported: at}); *s != want {
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
	if got := s.Next(1, s.At.Add(time.Hour), s.At.Add(time.Hour)).Count; got != savedCounted {
		t.Errorf("%d are counted, want %d", got, savedCounted)
	}
}

// TestABackdatedReportMakesNoIntervalLonger: a first report of hours ago and one of now are no
// two checkpoints that are hours apart.
func TestABackdatedReportMakesNoIntervalLonger(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }
	var s *Saved
	for n := 0; n <= 30; n += 10 {
		s = s.Next(1, minute(n), minute(n))
	}
	s = s.Next(2, minute(100), minute(460))
	s = s.Next(2, minute(461), minute(461))
	if got, want := s.Interval(6*3600), Duration(10*time.Minute); got != want {
		t.Errorf("the interval is %s, want %s", time.Duration(got), time.Duration(want))
	}
}

// TestOnlySilenceMakesAnIntervalLonger: whatever times are reported, the interval is never more
// than the declared one; once enough were seen, one more report makes it longer only after a
// silence that was longer than the interval.
func TestOnlySilenceMakesAnIntervalLonger(t *testing.T) {
	t.Parallel()
	const declared = Seconds(6 * 3600)
	begin := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var s *Saved
		attempt, now := 1, begin
		for range rapid.IntRange(1, 12).Draw(t, "reports") {
			silence := time.Duration(rapid.IntRange(10, 7*3600).Draw(t, "silence")) * time.Second
			now = now.Add(silence)
			if rapid.IntRange(0, 3).Draw(t, "evicted") == 0 {
				attempt++
			}
			at := now.Add(-time.Duration(rapid.IntRange(-3600, 8*3600).Draw(t, "ago")) * time.Second)
			if last := s.Last(attempt); !last.IsZero() && at.Sub(last) < SavedApart {
				at = last.Add(SavedApart) // an earlier one is not noted
			}
			before, scored := s.Interval(declared), s != nil && s.Count >= savedScored && s.Longest > 0
			s = s.Next(attempt, at, now)
			switch after := s.Interval(declared); {
			case after > declared.Duration():
				t.Fatalf("the interval is %s, and %s is declared", time.Duration(after), time.Duration(declared.Duration()))
			case scored && after > before && silence < time.Duration(after):
				t.Fatalf("a report after %s makes the interval %s, and it was %s", silence, time.Duration(after), time.Duration(before))
			}
		}
	})
}
