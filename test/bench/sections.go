package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// section is a table that can be taken alone, or with the others of its group.
type section struct {
	name, group string
	take        func(context.Context, options) error
}

// all is the group of every section.
const all = "all"

// sections are in the order in which they are taken. A count of zero leaves one out.
func sections() []section {
	alone := func(take func() error) func(context.Context, options) error {
		return func(context.Context, options) error { return take() }
	}
	counted := func(count func(options) int, take func(context.Context, options) error) func(context.Context, options) error {
		return func(ctx context.Context, o options) error {
			if count(o) < 1 {
				return nil
			}
			return take(ctx, o)
		}
	}
	return []section{
		{"new-gangs", "decisions", alone(newGangs)},
		{"other-decisions", "decisions", alone(largeDecisions)},
		{"node-event", "decisions", alone(nodeEvents)},
		{"idle", "cluster", counted(func(o options) int { return o.idle }, idle)},
		{"burst", "cluster", counted(func(o options) int { return min(o.burst, o.rounds) }, bursts)},
		{"large", "cluster", counted(func(o options) int { return o.large - 1 }, large)},
		{"takeover", "takeover", counted(func(o options) int { return o.takeOvers }, takeOvers)},
	}
}

// sectionNames lists what the flag takes: sections, and groups of them.
func sectionNames() string {
	groups := map[string][]string{}
	var order []string
	for _, s := range sections() {
		if groups[s.group] == nil {
			order = append(order, s.group)
		}
		groups[s.group] = append(groups[s.group], s.name)
	}
	var texts []string
	for _, group := range order {
		if names := groups[group]; len(names) > 1 {
			texts = append(texts, fmt.Sprintf("%s (%s)", group, strings.Join(names, ", ")))
		} else {
			texts = append(texts, group)
		}
	}
	return strings.Join(texts, ", ") + " or " + all
}

// sectionsOf returns the sections of names, of groups or sections, in their order.
func sectionsOf(names string) (chosen []section, err error) {
	wanted := strings.Split(names, ",")
	known := map[string]bool{all: true}
	for _, s := range sections() {
		known[s.name], known[s.group] = true, true
		if slices.ContainsFunc(wanted, func(name string) bool { return name == all || name == s.group || name == s.name }) {
			chosen = append(chosen, s)
		}
	}
	for _, name := range wanted {
		if !known[name] {
			return nil, fmt.Errorf("section %q: want names of %s, with commas in between", name, sectionNames())
		}
	}
	return chosen, nil
}
