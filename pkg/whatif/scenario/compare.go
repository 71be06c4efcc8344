package scenario

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// compare returns the differences between what was expected of a step and what
// happened, each in a sentence.
func (p *play) compare(e *Expect, got *StepOutcome) []string {
	var differences []string
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }

	for _, want := range e.Admitted {
		i := slices.IndexFunc(got.Admitted, func(a AdmittedOutcome) bool { return a.Name == want.Name })
		if i < 0 {
			differ("admitted: want %s; %s", want.Name, p.state(want.Name))
			continue
		}
		if a := got.Admitted[i]; want.Cluster != "" && want.Cluster != a.Cluster {
			differ("admitted: want %s on cluster %s, got cluster %s", want.Name, want.Cluster, a.Cluster)
		} else if nodes := a.Nodes(); len(want.Nodes) > 0 && !slices.Equal(slices.Sorted(slices.Values(want.Nodes)), nodes) {
			differ("admitted: want %s on %s, got %s", want.Name, strings.Join(want.Nodes, ", "), strings.Join(nodes, ", "))
		}
		placed := got.Admitted[i].Pods()
		for _, set := range sortedKeys(want.Pods) {
			if placed[set] != want.Pods[set] {
				differ("admitted: want %s with %d pods of %q, got %d", want.Name, want.Pods[set], set, placed[set])
			}
		}
	}
	for _, a := range got.Admitted {
		if !slices.ContainsFunc(e.Admitted, func(want Admitted) bool { return want.Name == a.Name }) {
			differ("admitted: got %s on %s, want it not admitted", a.Name, strings.Join(a.Nodes(), ", "))
		}
	}
	for _, want := range e.Evicted {
		differences = append(differences, match("evicted", want.Name, want.Because, want.Contains, got.Evicted, p.state(want.Name))...)
	}
	for _, r := range got.Evicted {
		if !slices.ContainsFunc(e.Evicted, func(want Evicted) bool { return want.Name == r.Name }) {
			differ("evicted: got %s (%s: %s), want it not evicted", r.Name, r.kind(), r.message())
		}
	}
	for _, want := range e.Rejected {
		differences = append(differences, match("rejected", want.Name, "", want.Contains, got.Rejected, p.state(want.Name))...)
	}
	for _, r := range got.Rejected {
		if !slices.ContainsFunc(e.Rejected, func(want Rejected) bool { return want.Name == r.Name }) {
			differ("rejected: got %s (%s), want it accepted", r.Name, r.message())
		}
	}
	for _, want := range e.Waiting {
		differences = append(differences, match("waiting", want.Name, want.Because, want.Contains, got.Waiting, p.state(want.Name))...)
	}
	for _, name := range e.Running {
		if record, known := p.Record(workload.ID(name)); !known || !record.Holding || record.Phase.Final() {
			differ("running: want %s; %s", name, p.state(name))
		}
	}
	for _, name := range sortedKeys(e.Ended) {
		if record, known := p.Record(workload.ID(name)); !known || record.Phase != e.Ended[name] {
			differ("ended: want %s %s; %s", name, e.Ended[name], p.state(name))
		}
	}
	return differences
}

// match compares one expectation with what is there by its name.
func match(field, name string, because workload.ReasonKind, texts []string, got []ReasonOutcome, state string) []string {
	i := slices.IndexFunc(got, func(r ReasonOutcome) bool { return r.Name == name })
	if i < 0 {
		return []string{fmt.Sprintf("%s: want %s; %s", field, name, state)}
	}
	var differences []string
	if r := got[i]; because != "" && !r.isBecause(because) {
		differences = append(differences, fmt.Sprintf("%s: want %s because of %s, got %s: %s", field, name, because, r.kind(), r.message()))
	}
	for _, text := range texts {
		if !strings.Contains(got[i].message(), text) {
			differences = append(differences, fmt.Sprintf("%s: want the reason of %s to contain %q, got %q", field, name, text, got[i].message()))
		}
	}
	return differences
}

// state returns what is with a workload, for a difference.
func (p *play) state(name string) string {
	record, known := p.Record(workload.ID(name))
	switch {
	case !known:
		return "it has not been accepted"
	case record.Reason != nil:
		return fmt.Sprintf("it is %s (%s: %s)", record.Phase, record.Reason.Kind, record.Reason.Message)
	case len(record.Placements) > 0:
		nodes := AdmittedOutcome{Placements: record.Placements}.Nodes()
		return fmt.Sprintf("it is %s on %s", record.Phase, strings.Join(nodes, ", "))
	}
	return "it is " + string(record.Phase)
}
