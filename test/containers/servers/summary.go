package main

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/testkit/tally"
)

// summary says where the servers of the tests of which packages ran, a line for each kind
// and place; root is the directory of the repository.
func summary(root string, notes []tally.Note) []string {
	return []string{
		"Postgres: databases in the container for the tests of " + packages(root, notes, tally.Postgres, tally.Shared),
		"Postgres: servers of their own on this machine for the tests of " + packages(root, notes, tally.Postgres, tally.Own),
		"NATS: servers in the container for the tests of " + packages(root, notes, tally.NATS, tally.Shared),
		"NATS: servers on this machine, whose files the container does not see, for the tests of " + packages(root, notes, tally.NATS, tally.Own),
	}
}

// packages lists the packages with such servers, and how many each had.
func packages(root string, notes []tally.Note, kind tally.Kind, place tally.Place) string {
	count := map[string]int{}
	var dirs []string
	for _, note := range notes {
		if note.Kind != kind || note.Place != place {
			continue
		}
		if count[note.Dir]++; count[note.Dir] == 1 {
			dirs = append(dirs, note.Dir)
		}
	}
	if len(dirs) == 0 {
		return "no package"
	}
	slices.Sort(dirs)
	all := make([]string, len(dirs))
	for i, dir := range dirs {
		all[i] = fmt.Sprintf("%s (%d)", strings.TrimPrefix(dir, root+"/"), count[dir])
	}
	return fmt.Sprintf("%d packages: %s", len(dirs), strings.Join(all, ", "))
}
