package cli

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// printRecord prints a line of progress.
func (w *waiting) printRecord(r workload.Record) {
	if w.label == "manifest" || strings.HasSuffix(w.label, "*") {
		w.label = reference(r.Workload) // now it has a name
	}
	line := output.Phase(&r)
	if r.Phase == workload.Queued && r.Position > 0 {
		line += fmt.Sprintf(", position %d", r.Position)
	}
	if r.Attempt > 1 {
		line += fmt.Sprintf(" (attempt %d)", r.Attempt)
	}
	switch {
	case r.Phase == workload.Admitted && len(r.Placements) > 0:
		line += fmt.Sprintf(" to cluster %s: %s", r.Cluster, places(r.Placements))
	case r.Reason != nil:
		line = stateOf(line, r.Reason)
	}
	w.printLine(line)
	if r.Phase == workload.Queued && r.Reason != nil && r.Reason.Kind == workload.ReasonNeverFits {
		w.printLine("warning: it cannot start as things are: cancel it, submit it again with a request that can be met, or have an administrator add what is missing")
	}
}

// stateOf is a phase with its reason, which may begin with the phase itself.
func stateOf(phase string, reason *workload.Reason) string {
	text := output.Reason(reason)
	switch {
	case text == "":
		return phase
	case len(text) >= len(phase) && strings.EqualFold(text[:len(phase)], phase):
		return text
	}
	return phase + ": " + text
}

func (w *waiting) printLine(text string) {
	if w.out != nil {
		fmt.Fprintf(w.out, "%s %s\n", output.Cell(w.label), output.Cell(text))
	}
}

// places prints a plan, such as "headgroup on node-1, 2 small on node-2".
func places(all []workload.Placement) string {
	const most = 4
	var parts []string
	for i, p := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more places", len(all)-most))
			break
		}
		if p.Pods == 1 {
			parts = append(parts, fmt.Sprintf("%s on %s", p.PodSet, p.Node))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s on %s", p.Pods, p.PodSet, p.Node))
	}
	return strings.Join(parts, ", ")
}
