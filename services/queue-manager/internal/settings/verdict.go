package settings

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/state"
)

// judge adds to the outcomes what the whole makes of each object: whether a queue admits
// anything, and whether the name of a cohort or flavor may be a mistake.
func (p *Plan) judge() error {
	tree, err := quota.New(state.PolicyOf(p.Settings.Queues, p.Settings.Policy))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	notes := p.Settings.Policy.Notes()
	for i := range p.Outcomes {
		o := &p.Outcomes[i]
		if o.Outcome == query.Deleted || o.Outcome == query.NotThere {
			continue
		}
		switch o.Kind {
		case "ClusterQueue":
			o.Held = tree.HeldBy("", "", o.Name)
			notes = attachNotes(o, notes, fmt.Sprintf("clusterQueue %q: cohortName", o.Name))
		case kueue.Cluster:
			notes = attachNotes(o, notes, fmt.Sprintf("cluster %q: flavors", o.Name))
		case "Cohort":
			notes = attachNotes(o, notes, fmt.Sprintf("cohort %q: parentName", o.Name))
		case "LocalQueue":
			if local := tree.Local(o.Namespace, o.Name); local != nil {
				o.Held = tree.HeldBy(o.Namespace, o.Name, local.ClusterQueue)
			}
		}
	}
	return nil
}

// attachNotes moves the notes that name the field of an object to its outcome.
func attachNotes(o *query.Configured, notes []string, field string) []string {
	return slices.DeleteFunc(notes, func(note string) bool {
		named := strings.Contains(note, field)
		if named {
			o.Notes = append(slices.Clone(o.Notes), note)
		}
		return named
	})
}
