package quota

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReservationsAreChecked: a policy with a wrong reservation is refused; the error names
// the field.
func TestReservationsAreChecked(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	right := Reservation{Name: "window", From: from, Until: from.Add(time.Hour), Nodes: []string{"one"}, Since: from, By: "ann"}
	many := slices.Repeat([]Reservation{right}, maxReservations+1)
	for name, c := range map[string]struct {
		change  func(*Reservation)
		all     []Reservation // in place of the changed one
		refused string
	}{
		"right":                  {change: func(*Reservation) {}},
		"no begin":               {change: func(r *Reservation) { r.From = time.Time{} }, refused: "reservations[0].from"},
		"ends before it begins":  {change: func(r *Reservation) { r.Until = r.From }, refused: "reservations[0].until"},
		"too long":               {change: func(r *Reservation) { r.Until = r.From.Add(longestReserved + 1) }, refused: "want at most ten years"},
		"no nodes":               {change: func(r *Reservation) { r.Nodes = nil }, refused: "reservations[0].nodes"},
		"names and labels":       {change: func(r *Reservation) { r.NodeLabels = map[string]string{"a": "b"} }, refused: "reservations[0].nodes"},
		"a node without a name":  {change: func(r *Reservation) { r.Nodes = []string{""} }, refused: "reservations[0].nodes[0]"},
		"too many nodes":         {change: func(r *Reservation) { r.Nodes = slices.Repeat(r.Nodes, maxReservedNodes+1) }, refused: "want at most 20000"},
		"for a queue and a user": {change: func(r *Reservation) { r.ClusterQueue, r.User = "q", "ann" }, refused: "reservations[0].user"},
		"too many":               {all: many, refused: "has 1001 entries; want at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{Reservations: c.all}
			if c.change != nil {
				changed := right
				c.change(&changed)
				config.Reservations = []Reservation{changed}
			}
			_, err := New(config)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
		})
	}
}

// TestPastReservationsMakeRoom: one that ended more than seven days ago goes, and an earlier one
// where there are too many. One that is not over stays, however many there are.
func TestPastReservationsMakeRoom(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	ended := func(name string, ago time.Duration) Reservation {
		return Reservation{Name: name, From: now.Add(-1000 * time.Hour), Until: now.Add(-ago)}
	}
	live, full := ended("live", -time.Hour), slices.Repeat([]Reservation{ended("live", -time.Hour)}, maxReservations-2)
	recent := []Reservation{ended("b", time.Hour), ended("a", 2*time.Hour)}
	for name, c := range map[string]struct {
		all  []Reservation
		more int
		want []string
	}{
		"none":                   {},
		"long ago and lately":    {[]Reservation{live, ended("old", pastKept+time.Second), ended("young", pastKept), ended("older", 2*pastKept)}, 1, []string{"older", "old"}},
		"as it ends":             {[]Reservation{ended("now", 0)}, maxReservations, []string{"now"}},
		"there is no room":       {slices.Concat(recent, full), 1, []string{"a"}},
		"no room for two":        {slices.Concat(recent, full), 2, []string{"a", "b"}},
		"no room for three":      {slices.Concat(recent, full), 3, []string{"a", "b"}},
		"there is room":          {slices.Concat(recent, full), 0, nil},
		"nothing of it is over":  {full, 10, nil},
		"long ago and no room":   {slices.Concat([]Reservation{ended("old", 2*pastKept)}, recent, full), 1, []string{"old", "a"}},
		"long ago make the room": {slices.Concat([]Reservation{ended("old", 2*pastKept)}, recent, full), 0, []string{"old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Outdated(c.all, c.more, now); !slices.Equal(got, c.want) {
				t.Errorf("%q go, want %q", got, c.want)
			}
		})
	}
}

// TestCoveringIsCovers: both name the same nodes.
func TestCoveringIsCovers(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"pool": "a"}
	for name, r := range map[string]Reservation{
		"by name": {Nodes: []string{"one", "three"}}, "by label": {NodeLabels: labels}, "by another label": {NodeLabels: map[string]string{"pool": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			covering := r.Covering()
			for _, node := range []string{"one", "two", "three"} {
				if covering(node, labels) != r.Covers(node, labels) {
					t.Errorf("node %s is covered: %t and %t", node, covering(node, labels), r.Covers(node, labels))
				}
			}
		})
	}
}
