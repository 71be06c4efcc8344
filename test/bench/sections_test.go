package main

import (
	"strings"
	"testing"
)

func TestSectionsOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, names, want string }{
		{"one", "idle", "idle"},
		{"a group", "cluster", "idle burst large"},
		{"two, in the order in which they are taken", "takeover,node-event", "node-event takeover"},
		{"a group and one of it", "decisions,new-gangs", "new-gangs other-decisions node-event"},
		{"all", "all", "new-gangs other-decisions node-event idle burst large takeover"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			chosen, err := sectionsOf(test.names)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range chosen {
				names = append(names, s.name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("the sections of %q are %q, want %q", test.names, got, test.want)
			}
		})
	}
	if _, err := sectionsOf("idle,latency"); err == nil || !strings.Contains(err.Error(), `"latency"`) {
		t.Errorf("the error of an unknown section is %v, want one that names it", err)
	}
}
