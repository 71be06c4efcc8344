package output

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Workload is what `describe workload` prints.
type Workload struct {
	workload.Record
	History []query.HistoryEntry `json:"history"`
	// Estimates are those that were made while it waited, oldest first.
	Estimates []query.PastEstimate `json:"estimates,omitempty"`
	// Eviction is what it would lose if it was evicted now; only of one that has started.
	Eviction *workload.EvictionCost `json:"eviction,omitempty"`
}

// field is a line of a description; one without a name goes on with the one before.
type field struct{ name, value string }

func writeFields(w io.Writer, fields []field) error {
	aligned := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range fields {
		switch {
		case f.value == "":
		case f.name == "":
			fmt.Fprintf(aligned, "\t%s\n", Cell(f.value))
		default:
			fmt.Fprintf(aligned, "%s:\t%s\n", f.name, Cell(f.value))
		}
	}
	return aligned.Flush()
}

// section writes a titled table; nothing when it has no rows.
func section(w io.Writer, title string, t Table) error {
	if len(t.Rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	return t.Write(w, "  ")
}

// weighedIn is what the preemption of a reason was compared with.
func weighedIn(r *workload.Reason) string {
	if r == nil || r.Preemption == nil {
		return ""
	}
	return weighed(r.Preemption.Choice)
}

// DescribeWorkload writes all that is known of a workload.
func DescribeWorkload(w io.Writer, d Workload, now time.Time) error {
	position := ""
	if d.Position > 0 {
		position = fmt.Sprintf("%d in queue %s", d.Position, d.Queue)
	}
	err := writeFields(w, []field{
		{"Name", d.Name}, {"Namespace", d.Namespace}, {"Kind", d.Kind}, {"ID", string(d.ID)}, {"Queue", d.Queue},
		{"Priority", strconv.Itoa(int(d.Priority))}, {"Phase", Phase(&d.Record)}, {"Reason", Reason(d.Reason)}, {"Hold", d.Hold.Message()}, {"Weighed", weighedIn(d.Reason)},
		{"Position", position}, {"Starts", StartsIn(&d.Record, now)}, {"Attempt", strconv.Itoa(d.Attempt)}, {"Home", d.MadeIn()}, {"Cluster", d.Cluster},
		{"Submitted", at(d.Times.Submitted, now)}, {"Admitted", at(d.Times.Admitted, now)},
		{"Dispatched", at(d.Times.Dispatched, now)}, {"Running", at(d.Times.Running, now)}, {"Finished", at(d.Times.Finished, now)},
		{"Ran", ran(&d.Record, now)}, {"Checkpoint", Checkpoint(&d.Record, now)}, {"Eviction", Eviction(d.Eviction)},
	})
	if err != nil {
		return err
	}
	if err := section(w, "Pods", podSets(d.PodSets)); err != nil {
		return err
	}
	if err := section(w, "Places", placements(d.Placements)); err != nil {
		return err
	}
	if d.Reason != nil && d.Reason.Shortage != nil {
		if err := shortage(w, d.Reason.Shortage); err != nil {
			return err
		}
	}
	if err := section(w, "Life", history(d.History)); err != nil {
		return err
	}
	if err := section(w, "Estimates", PastEstimates(d.Estimates, d.History)); err != nil {
		return err
	}
	return ways(w, &d.Record)
}

// Checkpoint is when the present attempt has saved its work last; empty without a report.
func Checkpoint(r *workload.Record, now time.Time) string { return at(r.Saved().Last(r.Attempt), now) }

// Eviction is what an eviction would lose; empty while it is not known.
func Eviction(cost *workload.EvictionCost) string {
	if cost == nil {
		return ""
	}
	return "if it is evicted now, " + cost.Message()
}

func at(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", t.Local().Format(time.DateTime), age(t, now))
}

func podSets(sets []workload.PodSet) Table {
	t := Table{Header: []string{"SET", "ROLE", "PODS", "EACH ASKS"}}
	for _, set := range sets {
		t.Rows = append(t.Rows, []string{set.Name, set.Role, sizeOf(set), requests(set.Template.Requests)})
	}
	return t
}

// sizeOf is the number of pods of a set, and its range where it has one.
func sizeOf(set workload.PodSet) string {
	submitted := set.Count - set.Resized
	if set.MinCount <= 0 || set.MinCount >= submitted {
		return strconv.Itoa(set.Count)
	}
	return fmt.Sprintf("%d (%d to %d)", set.Count, set.MinCount, submitted)
}

func placements(places []workload.Placement) Table {
	t := Table{Header: []string{"SET", "NODE", "PODS"}}
	for _, p := range places {
		t.Rows = append(t.Rows, []string{p.PodSet, p.Node, strconv.Itoa(p.Pods)})
	}
	return t
}

func shortage(w io.Writer, s *workload.Shortage) error {
	if _, err := fmt.Fprint(w, "\nShortage:\n"); err != nil {
		return err
	}
	fields := []field{{"  Pod set", fmt.Sprintf("%s, %d of %d pods do not fit", s.PodSet, s.Unplaced, s.Pods)}}
	if s.Resource != "" {
		fields = append(fields,
			field{"  Resource", string(s.Resource)},
			field{"  Each pod requests", atMost(s.Resource, s.Asked)},
			field{"  Free on the best node", atLeast(s.Resource, s.Largest)},
			field{"  Free in sum", fmt.Sprintf("%s over %d eligible nodes", atLeast(s.Resource, s.Sum), s.Eligible)})
	}
	for _, l := range s.Lacking {
		fields = append(fields, field{"  Lacking", fmt.Sprintf("%s on %d of %d eligible nodes (each pod requests %s)",
			l.Resource, l.Nodes, s.Eligible, atMost(l.Resource, l.Asked))})
	}
	var excluded []string
	for _, cause := range slices.Sorted(maps.Keys(s.Excluded)) {
		excluded = append(excluded, fmt.Sprintf("%d %s", s.Excluded[cause], cause))
	}
	fields = append(fields, field{"  Nodes excluded", strings.Join(excluded, ", ")})
	return writeFields(w, fields)
}

func history(entries []query.HistoryEntry) Table {
	t := Table{Header: []string{"AT", "AFTER", "PHASE", "ATTEMPT", "REASON"}} // all of each reason, at every width
	for i, e := range entries {
		after := ""
		if i > 0 {
			after = Latency(e.At.Sub(entries[0].At))
		}
		t.Rows = append(t.Rows, []string{
			e.At.Local().Format("2006-01-02 15:04:05.000"), after, string(e.Phase), strconv.Itoa(e.Attempt), Reason(e.Reason),
		})
	}
	return t
}

// Node is what `describe node` prints.
type Node struct {
	query.Node
	Workloads []workload.Record `json:"workloads"` // those with a place on it
}

// DescribeNode writes a node and whose places are on it.
func DescribeNode(w io.Writer, d Node, now time.Time) error {
	fields := []field{
		{"Name", d.Name}, {"Cluster", d.Cluster}, {"Status", status(d.Node)}, {"Created", at(d.Created, now)}, {"Taints", taints(d.Node)},
	}
	name := "Labels" // the first has it
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		fields = append(fields, field{name, key + "=" + d.Labels[key]})
		name = ""
	}
	if err := writeFields(w, fields); err != nil {
		return err
	}
	resources := Table{Header: []string{"RESOURCE", "ALLOCATABLE", "UNMANAGED", "RESERVED", "FREE"}}
	for _, name := range d.Allocatable.Names() {
		resources.Rows = append(resources.Rows, []string{
			string(name), atLeast(name, d.Allocatable[name]), atMost(name, d.Unmanaged[name]), atMost(name, d.Reserved[name]), atLeast(name, d.Free[name]),
		})
	}
	if err := section(w, "Resources", resources); err != nil {
		return err
	}
	places := Table{Header: []string{"NAMESPACE", "NAME", "KIND", "PHASE", "SET", "PODS"}}
	for i := range d.Workloads {
		r := &d.Workloads[i]
		for _, p := range r.Placements {
			if p.Node == d.Name {
				places.Rows = append(places.Rows, []string{r.Namespace, r.Name, r.Kind, Phase(r), p.PodSet, strconv.Itoa(p.Pods)})
			}
		}
	}
	return section(w, "Places", places)
}
