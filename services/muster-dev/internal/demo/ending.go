package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"muster.dev/muster/services/internal/client/output"
)

// table ends the story.
func (s *story) table(out io.Writer) {
	fmt.Fprintln(out)
	aligned := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(aligned, "GANG\tPHASE\tSUBMITTED\tADMITTED\tCREATED\tRUNNING\tLATENCY (to running)")
	for _, g := range s.gangs {
		t := g.record.Times
		latency := "waits"
		if !t.Running.IsZero() && g.freed.IsZero() {
			latency = output.Latency(t.Running.Sub(t.Submitted)) + " from submission"
		} else if !t.Running.IsZero() {
			latency = output.Latency(t.Running.Sub(g.freed)) + " from the end of the first"
		}
		fmt.Fprintf(aligned, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.record.Name, g.record.Phase,
			clock(t.Submitted), clock(t.Admitted), clock(t.Dispatched), clock(t.Running), latency)
	}
	_ = aligned.Flush() // to the terminal
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("15:04:05.000")
}

// cleanUp takes away what the story left in a cluster of the user's.
func (s *story) cleanUp(ctx context.Context) error {
	s.report.step("The gangs are removed.")
	var failures []error
	for _, g := range s.gangs {
		if !g.record.Phase.Final() {
			failures = append(failures, s.cancel(ctx, g))
		}
	}
	s.report.note("left are the namespaces %s and muster-system, with Muster's service accounts and rights", s.namespace)
	return errors.Join(failures...)
}
