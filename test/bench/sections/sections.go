// Package sections chooses which tables a program that measures takes, by the names of a flag. It
// is for such programs, not for tests.
package sections

import (
	"fmt"
	"slices"
	"strings"
)

// All is the name of every section together.
const All = "all"

// Section is a table that can be taken alone, or with the others of its group.
type Section[T any] struct {
	// Group is empty for a section that is in none.
	Name, Group string
	Take        T
}

func (s Section[T]) is(name string) bool {
	return name == All || name == s.Name || s.Group != "" && name == s.Group
}

// Names lists what the flag takes: sections, and groups with the sections in them.
func Names[T any](of []Section[T]) string {
	var order []string
	groups := map[string][]string{}
	for _, s := range of {
		group := s.Group
		if group == "" {
			group = s.Name
		}
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], s.Name)
	}
	var texts []string
	for _, group := range order {
		if names := groups[group]; len(names) > 1 {
			texts = append(texts, fmt.Sprintf("%s (%s)", group, strings.Join(names, ", ")))
		} else {
			texts = append(texts, group)
		}
	}
	return strings.Join(texts, ", ") + " or " + All
}

// Chosen returns the sections of names with commas in between, in the order in which they are
// taken, each once.
func Chosen[T any](of []Section[T], names string) (chosen []Section[T], err error) {
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if name != All && !slices.ContainsFunc(of, func(s Section[T]) bool { return s.is(name) }) {
			return nil, fmt.Errorf("section %q: want names of %s, with commas in between", name, Names(of))
		}
	}
	for _, s := range of {
		if slices.ContainsFunc(wanted, s.is) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}
