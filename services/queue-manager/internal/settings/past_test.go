package settings_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/services/queue-manager/internal/settings"
)

// reserved are the present objects with reservations that end at these times.
func reserved(t *testing.T, file settings.File, ends map[string]time.Time) settings.Set {
	t.Helper()
	var all query.ConfigureRequest
	for name, end := range ends {
		all.Apply = append(all.Apply, reserving(t, name, end).Apply...)
	}
	plan, err := file.Plan(nil, "", all, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Set
}

func reserving(t *testing.T, name string, end time.Time) query.ConfigureRequest {
	t.Helper()
	change, err := query.Reserve(quota.Reservation{Name: name, From: end.Add(-time.Hour), Until: end, Nodes: []string{"n"}, Since: end.Add(-time.Hour), By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// TestAReservationTakesTheRoomOfPastOnes: another reservation removes those that ended more than
// seven days ago, and those that ended first where a thousand are there. Nothing else does.
func TestAReservationTakesTheRoomOfPastOnes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	few := map[string]time.Time{"live": now.Add(day), "lately": now.Add(-6 * day), "long-ago": now.Add(-8 * day)}
	full, live := map[string]time.Time{}, map[string]time.Time{}
	for i := range 1000 {
		name := fmt.Sprintf("r%04d", i)
		full[name], live[name] = now.Add(-day+time.Duration(i)*time.Second), now.Add(day)
	}
	hold := query.HoldRequest{Cluster: "east", By: "ann"}
	both := reserving(t, "new", now.Add(day)) // a file with an old one, which it names
	both.Apply = append(both.Apply, reserving(t, "long-ago", few["long-ago"]).Apply...)
	for name, c := range map[string]struct {
		ends    map[string]time.Time
		change  query.ConfigureRequest
		removed []string
		refused string
	}{
		"another":                    {ends: few, change: reserving(t, "new", now.Add(day)), removed: []string{"long-ago"}},
		"another, beside an old one": {ends: few, change: both},
		"one that is over itself":    {ends: few, change: reserving(t, "new", now.Add(-9*day)), removed: []string{"long-ago"}},
		"an old one is made again":   {ends: few, change: reserving(t, "long-ago", now.Add(day))},
		"the same again":             {ends: few, change: reserving(t, "lately", few["lately"])},
		"a change of something else": {ends: few, change: changeOf(t, hold)},
		"a thousand are over":        {ends: full, change: reserving(t, "new", now.Add(day)), removed: []string{"r0000"}},
		"none of them is over":       {ends: live, change: reserving(t, "new", now.Add(day)), refused: "has 1001 entries; want at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			present := reserved(t, settings.File{}, c.ends)
			plan, err := (settings.File{}).Plan(present, "", c.change, nil, now)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("the answer is %v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var removed []string
			for _, key := range plan.Removed {
				removed = append(removed, key.Name)
			}
			if !slices.Equal(removed, c.removed) {
				t.Errorf("removed are %q, want %q", removed, c.removed)
			}
			for name := range c.ends {
				_, there := plan.Set[kueue.Key{Kind: kueue.Reservation, Name: name}]
				if there == slices.Contains(c.removed, name) {
					t.Errorf("%s is there: %t", name, there)
				}
			}
			if len(plan.Outcomes) != len(c.change.Apply) {
				t.Errorf("the answer lists %v, want what was asked for", plan.Outcomes)
			}
		})
	}
}
