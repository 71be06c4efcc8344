package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Notes returns what is valid but may be a mistake: cohorts that exist only because a
// queue or cohort names them, and settings that do nothing. As in Kueue, naming a cohort makes it, so a misspelt name
// is no error; it makes a cohort that lends nothing.
func (c *Config) Notes() []string {
	defined, naming := map[string]bool{}, map[string][]string{}
	for _, co := range c.Cohorts {
		defined[co.Name] = true
	}
	name := func(cohort, field string) {
		if cohort != "" && !defined[cohort] {
			naming[cohort] = append(naming[cohort], field)
		}
	}
	for _, co := range c.Cohorts {
		name(co.Parent, fmt.Sprintf("cohort %q: parentName", co.Name))
	}
	for _, q := range c.ClusterQueues {
		name(q.Cohort, fmt.Sprintf("clusterQueue %q: cohortName", q.Name))
	}
	notes := append(c.unknownFlavors(), c.withoutAdmissionFairSharing()...)
	for _, cohort := range slices.Sorted(maps.Keys(naming)) {
		by := naming[cohort]
		switch {
		case len(by) == 1:
			notes = append(notes, fmt.Sprintf("%s %q: no cohort of that name is defined and nothing else names it, so there is no quota to borrow; %s", by[0], cohort, instead(cohort, defined, naming)))
		case len(defined) > 0:
			notes = append(notes, fmt.Sprintf("cohort %q is named by %d (%s) and not defined, so it has no quota, weight or parent of its own; %s",
				cohort, len(by), strings.Join(by, ", "), instead(cohort, defined, naming)))
		}
	}
	return notes
}

// instead returns how to correct the name of a cohort.
func instead(cohort string, defined map[string]bool, naming map[string][]string) string {
	known := maps.Clone(defined)
	for name := range naming {
		known[name] = true
	}
	delete(known, cohort)
	if len(known) == 0 {
		return "define it, or leave it out"
	}
	return fmt.Sprintf("correct the name (there are: %s), or define it under cohorts", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}
