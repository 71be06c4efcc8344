package main

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/testkit/tally"
)

// summary returns where the servers of the tests of which packages ran, a line for each kind
// and place; root is the directory of the repository.
func summary(root string, notes []tally.Note) []string {
	var lines []string
	for _, of := range []struct {
		what  string
		kind  tally.Kind
		place tally.Place
	}{
		{"Postgres, databases on the server for all tests", tally.Postgres, tally.Shared},
		{"Postgres, servers of their own on this machine", tally.Postgres, tally.Own},
		{"NATS, servers in the container", tally.NATS, tally.Shared},
		{"NATS, servers on this machine, whose files the container does not see", tally.NATS, tally.Own},
	} {
		count, packages := users(root, notes, of.kind, of.place)
		lines = append(lines, fmt.Sprintf("%s: %d for the tests of %s", of.what, count, packages))
	}
	return lines
}

// users counts such notes, and lists the packages that have made them, each with its count.
func users(root string, notes []tally.Note, kind tally.Kind, place tally.Place) (int, string) {
	total, count := 0, map[string]int{}
	var dirs []string
	for _, note := range notes {
		if note.Kind != kind || note.Place != place {
			continue
		}
		total++
		if count[note.Dir]++; count[note.Dir] == 1 {
			dirs = append(dirs, note.Dir)
		}
	}
	if total == 0 {
		return 0, "no package"
	}
	slices.Sort(dirs)
	all := make([]string, len(dirs))
	for i, dir := range dirs {
		all[i] = fmt.Sprintf("%s (%d)", strings.TrimPrefix(dir, root+"/"), count[dir])
	}
	return total, strings.Join(all, ", ")
}
