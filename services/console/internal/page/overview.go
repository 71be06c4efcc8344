package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// busiest is how many queues the overview shows.
const busiest = 20

// mostFlavors bounds the flavors that are shown of a cluster.
const mostFlavors = 8

// mostLines bounds a list of sentences.
const mostLines = 50

// Overview is the first page. Tenants see their queues and workloads; the rest is for operators.
type Overview struct {
	Operator bool
	// MapFollows: the nodes were not there in time, and the updates of the page bring them.
	MapFollows bool
	// Attention is what a person has to look at, Notes what may be meant so.
	Attention              []Line
	Notes                  []string
	Parts                  []Field
	Phases                 []Count
	Clusters               []ClusterRow
	Accelerators           []Accelerator
	Heat                   []Cluster
	Nodes, NodesPerCell    int
	Queues                 []QueueRow
	QueuesLeftOut, Waiting int
	// Stuck are workloads of tenants that need a person.
	Stuck    []WorkloadRow
	Activity Activity
}

// Line is a sentence with the page of what it is about; its link is empty for none.
type Line struct{ Text, Link string }

// Field is a name with a value.
type Field struct{ Name, Value string }

// Count is a number of workloads in a phase.
type Count struct {
	Phase  workload.Phase
	Number int
}

// ClusterRow is a cluster in the overview.
type ClusterRow struct {
	Name, Heard, State string
	// Flavors are those that it offers.
	Flavors string
	// Cordon is who cordoned or drained it, and why; empty for none.
	Cordon                  string
	Nodes, ReadyNodes, Live int
	Actions                 []Action
}

// ForOperator makes the overview of an operator.
func ForOperator(status query.StatusAnswer, nodes []query.Node, queues []query.Queue, rackLabel string, now time.Time) Overview {
	o := forAll(queues, now)
	o.Operator = true
	o.Attention, o.Notes = attention(status), bounded(status.Notes)
	o.Parts = []Field{{"Leader", output.Leader(status)}, {"Postgres", output.Postgres(status.Postgres)}, {"NATS", output.NATS(status.NATS)}}
	for _, phase := range workload.Phases() {
		if n := status.Workloads[phase]; n > 0 {
			o.Phases = append(o.Phases, Count{phase, n})
		}
	}
	for _, c := range status.Clusters {
		row := ClusterRow{Name: c.Name, State: c.State, Nodes: c.Nodes, ReadyNodes: c.ReadyNodes, Live: c.Live, Flavors: flavors(c.Flavors)}
		if c.Cordon != nil {
			row.Cordon = c.Cordon.Message()
		}
		switch {
		case c.Silent != "":
			row.Heard = "unknown: " + c.Silent
		default:
			row.Heard = fmt.Sprintf("watcher %s, dispatcher %s", heard(c.WatcherHeard, status.At), heard(c.DispatcherHeard, status.At))
		}
		o.Clusters = append(o.Clusters, row)
	}
	o.Accelerators, o.Heat, o.Nodes = Accelerators(nodes), Heat(nodes, rackLabel), len(nodes)
	for _, c := range o.Heat {
		for _, r := range c.Racks {
			for _, cell := range r.Cells {
				o.NodesPerCell = max(o.NodesPerCell, cell.Nodes)
			}
		}
	}
	return o
}

// flavors lists the flavors that a cluster offers; none stands for all.
func flavors(names []string) string {
	switch {
	case len(names) == 0:
		return "all"
	case len(names) > mostFlavors:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostFlavors], ", "), len(names)-mostFlavors)
	}
	return strings.Join(names, ", ")
}

// attention lists what a person has to look at, with links to the pages of it.
func attention(status query.StatusAnswer) []Line {
	var lines []Line
	for i, text := range bounded(status.Attention) {
		line := Line{Text: text}
		if i < min(len(status.About), mostLines) {
			line.Link = aboutLink(status.About[i])
		}
		lines = append(lines, line)
	}
	return lines
}

func aboutLink(of query.About) string {
	switch {
	case of.Workload != "":
		return WorkloadLink(of.Workload)
	case of.DeadLetters:
		return DeadLettersLink
	case of.Cluster != "":
		return "/nodes?" + url.Values{"cluster": {of.Cluster}}.Encode()
	}
	return ""
}

// heard is the age of a last report.
func heard(then, now time.Time) string {
	if then.IsZero() {
		return "never"
	}
	if now.Sub(then) < time.Minute {
		return "now" // a report comes every few seconds, and its age would change the page each time
	}
	return output.Age(then, now) + " ago"
}

// needsPerson are the reasons that do not pass by themselves.
func needsPerson(r *workload.Reason) bool {
	return r != nil && slices.Contains([]workload.ReasonKind{
		workload.ReasonNeverFits, workload.ReasonHeld, workload.ReasonNoNodes, workload.ReasonNotStorable, workload.ReasonForbidden, workload.ReasonRefused,
	}, r.Kind)
}

// ForTenant makes the overview of a tenant; records are its waiting workloads, or the first of
// them.
func ForTenant(queues []query.Queue, records []workload.Record, now time.Time) Overview {
	o := forAll(queues, now)
	for i := range records {
		if r := &records[i]; needsPerson(r.Reason) && len(o.Stuck) < mostLines {
			o.Stuck = append(o.Stuck, row(r, now))
		}
	}
	return o
}

func forAll(queues []query.Queue, now time.Time) Overview {
	var o Overview
	sorted := slices.Clone(queues)
	slices.SortStableFunc(sorted, func(a, b query.Queue) int { return cmp.Compare(b.Waiting, a.Waiting) })
	for i, q := range sorted {
		o.Waiting += q.Waiting
		if i < busiest {
			o.Queues = append(o.Queues, queueRow(q, queues, now))
		}
	}
	o.QueuesLeftOut = len(queues) - len(o.Queues)
	return o
}

// bounded cuts a list, and marks it.
func bounded(lines []string) []string {
	if len(lines) <= mostLines {
		return lines
	}
	return append(slices.Clone(lines[:mostLines]), fmt.Sprintf("and %d more: muster status lists all", len(lines)-mostLines))
}
