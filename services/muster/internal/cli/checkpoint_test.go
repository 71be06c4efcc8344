package cli

import (
	"context"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// reporter notes when a workload has saved its work.
type reporter struct {
	actor
	at []time.Time
}

func (r *reporter) checkpoint(_ context.Context, _ workload.Record, at time.Time, _ string) error {
	r.at = append(r.at, at)
	return nil
}

// TestACheckpointIsReportedByAnyClock: the answer is found without comparing the clock here with
// that of queue-manager, which may be minutes behind or ahead.
func TestACheckpointIsReportedByAnyClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	const none = "" // it goes on waiting
	saved := func(ago time.Duration) workload.Record {
		r := workload.Record{Workload: workload.Workload{ID: "a"}, Phase: workload.Running, Attempt: 2}
		if ago != 0 {
			r.SetSaved((*workload.Saved)(nil).Next(2, now.Add(-ago), now.Add(-ago)))
		}
		return r
	}
	at := func(ago time.Duration) string { return "has saved its work at " + now.Add(-ago).Format(time.RFC3339) }
	refused := saved(time.Hour)
	refused.Reason = &workload.Reason{Message: event.NotSaved + "it is admitted, and only a workload that runs has work to save"}
	for name, c := range map[string]struct {
		at            time.Time // of --at; zero without it
		before, after workload.Record
		want          [2]string // before and after it is asked for
	}{
		"the first, the clock is ahead":    {time.Time{}, saved(0), saved(time.Minute), [2]string{none, at(time.Minute)}},
		"the first, the clock is behind":   {time.Time{}, saved(0), saved(-time.Minute), [2]string{none, at(-time.Minute)}},
		"another":                          {time.Time{}, saved(time.Hour), saved(time.Minute), [2]string{none, at(time.Minute)}},
		"too near to the last":             {time.Time{}, saved(time.Second), saved(time.Second), [2]string{none, at(time.Second)}},
		"refused":                          {time.Time{}, saved(time.Hour), refused, [2]string{none, none}},
		"something else has changed":       {time.Time{}, saved(0), saved(0), [2]string{none, none}},
		"another, something else changed":  {time.Time{}, saved(time.Hour), saved(time.Hour), [2]string{none, none}},
		"--at that is to come elsewhere":   {now, saved(time.Hour), saved(time.Minute), [2]string{none, at(time.Minute)}},
		"--at":                             {now, saved(time.Hour), saved(time.Second), [2]string{none, at(time.Second)}},
		"--at too near to the last":        {now, saved(time.Second), saved(time.Second), [2]string{at(time.Second), at(time.Second)}},
		"--at, something else has changed": {now, saved(time.Hour), saved(time.Hour), [2]string{none, none}},
		"--at, refused":                    {now, saved(time.Hour), refused, [2]string{none, none}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := &reporter{}
			change := (&requestOptions{}).checkpoint(c.at)
			first := change.made(&c.before, time.Time{})
			if err := change.ask(t.Context(), &connection{actor: told}, c.before); err != nil {
				t.Fatal(err)
			}
			if got := [2]string{first, change.made(&c.after, now)}; got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			if len(told.at) != 1 || !told.at[0].Equal(c.at) || told.at[0].IsZero() != c.at.IsZero() {
				t.Errorf("reported is %s, want %s", told.at, c.at)
			}
		})
	}
}
