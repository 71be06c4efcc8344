package sections_test

import (
	"strings"
	"testing"

	"muster.dev/muster/test/bench/sections"
)

// tables are two of a group, one of a group of its own, and one of none.
var tables = []sections.Section[int]{
	{Name: "new", Group: "decisions", Take: 1}, {Name: "other", Group: "decisions", Take: 2},
	{Name: "takeover", Group: "takeover", Take: 3}, {Name: "burst", Take: 4},
}

func TestChosen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, names, want string }{
		{"one", "new", "new"},
		{"one without a group", "burst", "burst"},
		{"a group", "decisions", "new other"},
		{"two, in the order in which they are taken", "burst,other", "other burst"},
		{"a group and one of it", "decisions,new", "new other"},
		{"all", "all", "new other takeover burst"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			chosen, err := sections.Chosen(tables, test.names)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range chosen {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("the sections of %q are %q, want %q", test.names, got, test.want)
			}
		})
	}
}

func TestChosenRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"", "latency", "new,latency", "new,"} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			chosen, err := sections.Chosen(tables, names)
			if err == nil || !strings.Contains(err.Error(), sections.Names(tables)) {
				t.Errorf("Chosen = %v, %v; want an error that lists the names", chosen, err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got, want := sections.Names(tables), "decisions (new, other), takeover, burst or all"; got != want {
		t.Errorf("Names = %q, want %q", got, want)
	}
}
