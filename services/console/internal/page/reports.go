package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// Table is a table as the command line has it; the first cell of a row leads to its link.
type Table struct {
	Caption string
	Header  []string
	Rows    []TableRow
	// More rows are left out.
	More int
}

// TableRow is a row of a table; its link is empty for none.
type TableRow struct {
	Link  string
	Cells []string
}

// tableOf makes a table of as many rows as a page has room for.
func tableOf(caption string, t output.Table) Table { return tableWithin(mostTable, caption, t) }

// tableWithin makes a table of as many rows as there is room for.
func tableWithin(left room, caption string, t output.Table) Table {
	table := Table{Caption: caption}
	for _, name := range t.Header {
		table.Header = append(table.Header, strings.ToUpper(name[:1])+strings.ToLower(name[1:]))
	}
	for i, cells := range t.Rows {
		if !left.take(cells...) {
			table.More = len(t.Rows) - i
			break
		}
		table.Rows = append(table.Rows, TableRow{Cells: cells})
	}
	return table
}

// UsageForm is what a report of usage is of, as in the address of the page.
type UsageForm struct{ Since, Until, By, Queue, Namespace, Resource, Price string }

// Keys lists what it may be by.
func (UsageForm) Keys() string { return strings.Join(query.UsageKeys(), ", ") }

// Usage is the page of who used what.
type Usage struct {
	Table
	Since, Until time.Time
	// Begins is since when it is known, if that is later than Since.
	Begins string
}

// MakeUsage makes the page; all shows all resources, not accelerators alone.
func MakeUsage(answer query.UsageAnswer, all bool) Usage {
	u := Usage{Table: tableOf("Usage", output.Usage(answer, all)), Since: answer.Since, Until: answer.Until}
	if answer.Oldest.IsZero() || answer.Oldest.After(answer.Since) {
		u.Begins = output.UsageBegins(answer)
	}
	return u
}

// WhatIfForm is a change to try, as in the address of the page.
type WhatIfForm struct {
	Operator                                                      bool
	Workload, Priority, Queue, Pods                               string
	Drain, Cluster, Label, Like, Shape, ShapeLabels, Count, Error string
	// Requests of the pods of one pod set, and another queues file.
	Requests, Queues string
	// Manifests that would be submitted, and what they leave open.
	Manifests, To, Namespace, RunTime, Submitter string
}

// WhatIf is what a change would do.
type WhatIf struct {
	// Asked: a change was given.
	Asked bool
	// Problem is why there is no answer.
	Problem string
	Table   Table
	Same    string
	Others  int
	Cut     bool
	Version int64
	MadeAt  time.Time
}

// MakeWhatIf makes the page of an answer.
func MakeWhatIf(answer query.WhatIfAnswer, now time.Time) WhatIf {
	w := WhatIf{
		Asked: true, Table: tableOf("What differs", output.WhatIf(answer, now)), Same: output.WhatIfSame(answer), Others: answer.Others, Cut: answer.Cut,
		Version: answer.Version, MadeAt: answer.MadeAt,
	}
	w.Table.Rows = w.Table.Rows[:min(len(w.Table.Rows), mostWhatIfRows)]
	w.Table.More = 0 // it is in the sentence
	if more := len(answer.Workloads) - len(w.Table.Rows); more > 0 {
		w.Same = fmt.Sprintf("%d more differ. %s", more, w.Same)
	}
	for i := range w.Table.Rows {
		if of := answer.Workloads[i]; !of.Submitted {
			w.Table.Rows[i].Link = WorkloadLink(of.ID)
		}
		// The name comes first, because it is the link.
		cells := w.Table.Rows[i].Cells
		w.Table.Rows[i].Cells = append([]string{cells[0] + "/" + cells[1]}, cells[2:]...)
	}
	w.Table.Header = append([]string{"Workload"}, w.Table.Header[2:]...)
	return w
}

// mostWhatIfRows bounds the rows of an answer.
const mostWhatIfRows = 1000

// Decisions is the page of what was decided.
type Decisions struct {
	Rows []DecisionRow
	// Workload is the one of which decisions are shown; empty for all.
	Workload workload.ID
	Replay   string
	Next     string
}

// DecisionRow is a decision.
type DecisionRow struct {
	Key        string
	At         time.Time
	Version    int64
	Inputs     []string
	InputsMore int
	Steps      []DecisionStep
	StepsMore  int
	TooLarge   bool
	Bytes      int
}

// DecisionStep is what became of a workload.
type DecisionStep struct {
	Link, ID, Text, PhaseClass string
	Here                       bool
}

// MakeDecisions makes the page; with a workload it has the decisions about that alone.
func MakeDecisions(answer query.DecisionsAnswer, of workload.ID) Decisions {
	page := Decisions{Workload: of}
	left := room(mostTable)
	for _, d := range answer.Decisions {
		if of != "" && !slices.ContainsFunc(d.Steps, func(s query.DecisionStep) bool { return s.Workload == of }) {
			continue
		}
		row := DecisionRow{
			Key: d.DecisionKey.String(), At: d.At, Version: d.Version, Inputs: inputs(d.Inputs), InputsMore: d.InputsInAll - len(d.Inputs),
			TooLarge: d.TooLarge, Bytes: d.Bytes,
		}
		for _, s := range d.Steps {
			step := decisionStep(s)
			step.Here = s.Workload == of
			if step.Here || len(row.Steps) < mostSteps && left.take(step.Link, step.ID, step.Text) {
				row.Steps = append(row.Steps, step)
			}
		}
		row.StepsMore = d.StepsInAll - len(row.Steps)
		page.Rows = append(page.Rows, row)
	}
	if n := len(answer.Decisions); n > 0 {
		page.Replay = "muster replay --since " + answer.Decisions[n-1].At.UTC().Format(time.RFC3339)
	}
	if answer.Next != nil {
		values := url.Values{"before": {answer.Next.String()}}
		if of != "" {
			values.Set("workload", string(of))
		}
		page.Next = "/decisions?" + values.Encode()
	}
	return page
}

// mostSteps bounds the steps of a decision on the page.
const mostSteps = 25

func decisionStep(s query.DecisionStep) DecisionStep {
	step := DecisionStep{Link: WorkloadLink(s.Workload), ID: string(s.Workload), PhaseClass: string(s.Phase)}
	step.Text = fmt.Sprintf("%s, attempt %d", s.Phase, s.Attempt)
	if s.Cluster != "" {
		step.Text += ", cluster " + s.Cluster
	}
	if s.Reason != nil {
		step.Text += ": " + output.Short(output.Reason(s.Reason), longestReason)
	}
	return step
}

// inputs names what came in, each kind once with its number.
func inputs(all []query.DecisionInput) []string {
	counts := map[string]int{}
	var kinds []string
	for _, in := range all {
		name := in.Kind
		if in.Message != "" {
			name = in.Message
		}
		if counts[name]++; counts[name] == 1 {
			kinds = append(kinds, name)
		}
	}
	for i, name := range kinds {
		if n := counts[name]; n > 1 {
			kinds[i] = fmt.Sprintf("%s, %d times", name, n)
		}
	}
	return kinds
}

// decisionsLink is the page of what was decided about a workload around a time.
func decisionsLink(id workload.ID, at time.Time) string {
	return "/decisions?" + url.Values{"workload": {string(id)}, "until": {at.UTC().Add(decidedWithin).Format(time.RFC3339)}}.Encode()
}

// decidedWithin is how much later than a step of a life its commit is at most, as a rule.
const decidedWithin = 2 * time.Second
