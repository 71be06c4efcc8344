package output

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Workloads is the table of workloads. Those of one namespace are shown without it.
func Workloads(records []workload.Record, format Format, now time.Time) Table {
	t := NamespacedWorkloads(records, format, now)
	if format != Wide && oneNamespace(records) {
		t.Drop("NAMESPACE")
	}
	return t
}

// NamespacedWorkloads is the table of workloads with their namespaces.
func NamespacedWorkloads(records []workload.Record, format Format, now time.Time) Table {
	t := Table{Header: []string{"NAMESPACE", "NAME", "KIND", "QUEUE", "PHASE", "PODS", "AGE", "REASON"}, Long: []string{"REASON"}}
	if format == Wide {
		t.Header = []string{"NAMESPACE", "NAME", "KIND", "QUEUE", "PHASE", "POSITION", "STARTS", "PRIORITY", "ATTEMPT", "HOME", "CLUSTER", "PODS", "REQUESTS", "AGE", "RAN", "ID", "REASON"}
		t.Long = nil
	}
	for i := range records {
		r := &records[i]
		row := []string{r.Namespace, r.Name, r.Kind, r.Queue, Phase(r), strconv.Itoa(r.Pods()), age(r.Times.Submitted, now), brief(r.Reason)}
		if format == Wide {
			row = []string{
				r.Namespace, r.Name, r.Kind, r.Queue, Phase(r), orDash(int(r.Position)), starts(r, now), strconv.Itoa(int(r.Priority)),
				strconv.Itoa(r.Attempt), dash(r.MadeIn()), dash(r.Cluster), strconv.Itoa(r.Pods()), requests(r.Requests()),
				age(r.Times.Submitted, now), dash(ran(r, now)), string(r.ID), Reason(r.Reason),
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// oneNamespace reports whether several workloads need no column for their namespace.
func oneNamespace(records []workload.Record) bool {
	return !slices.ContainsFunc(records, func(r workload.Record) bool { return r.Namespace != records[0].Namespace })
}

// brief is a reason for a table, with the figures first.
func brief(r *workload.Reason) string {
	if r != nil && r.Kind == workload.ReasonNeverFits {
		text, _, _ := strings.Cut(Reason(r), "; it waits until ")
		return text
	}
	if r == nil || r.Shortage == nil || r.Kind != workload.ReasonFit {
		return Reason(r)
	}
	s := r.Shortage
	if s.Resource == "" || s.Constraint != "" || len(s.Lacking) > 0 || s.Largest >= s.Asked {
		return Reason(r)
	}
	short := s.Resource[strings.LastIndexByte(string(s.Resource), '/')+1:]
	return fmt.Sprintf("needs %s %s, best has %s", atMost(s.Resource, s.Asked), short, atLeast(s.Resource, s.Largest))
}

// ran is how long all pods of a workload have run, or had run when it ended; empty for one
// that waits.
func ran(r *workload.Record, now time.Time) string {
	switch {
	case r.Times.Running.IsZero():
		return ""
	case r.Phase.Final() && !r.Times.Finished.IsZero():
		return age(r.Times.Running, r.Times.Finished)
	case r.Phase == workload.Running:
		return age(r.Times.Running, now)
	}
	return ""
}

// Clusters is the table of clusters; asked is when they were asked for.
func Clusters(clusters []query.ClusterStatus, asked time.Time) Table {
	t := Table{Header: []string{"NAME", "STATE", "NODES", "READY", "LIVE", "WATCHER HEARD", "DISPATCHER HEARD"}}
	for _, c := range clusters {
		row := []string{c.Name, c.State, strconv.Itoa(c.Nodes), strconv.Itoa(c.ReadyNodes), strconv.Itoa(c.Live)}
		if c.Silent != "" {
			row = append(row, "unknown: "+c.Silent)
		} else {
			row = append(row, heard(c.WatcherHeard, asked), heard(c.DispatcherHeard, asked))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Phase shows what a phase alone does not: an end that still holds capacity.
func Phase(r *workload.Record) string {
	if r.Holding && r.Phase.Final() {
		return string(r.Phase) + " (pods remain)"
	}
	return string(r.Phase)
}

// Reason is the sentence with its kind; empty for no reason. That of a cancellation says
// itself that it is one.
func Reason(r *workload.Reason) string {
	if r == nil {
		return ""
	}
	if r.Message == "" {
		return string(r.Kind)
	}
	if r.Kind == workload.ReasonCancelled && strings.HasPrefix(r.Message, string(workload.Cancelled)) {
		return r.Message
	}
	return string(r.Kind) + ": " + r.Message
}

// Queues is the table of queues. Wide shows their settings, too. Without queues of one name in
// several namespaces it has no column for the namespace.
func Queues(queues []query.Queue, format Format) Table {
	t := Table{Header: []string{"NAMESPACE", "NAME", "HELD", "WAITING", "LIVE", "QUOTA USED", "RESERVED"}, Long: []string{"QUOTA USED", "RESERVED"}}
	if format == Wide {
		t.Header, t.Long = append(t.Header, "STRATEGY", "CLUSTER QUEUE", "COHORT", "PAST USE", "NAMESPACES"), nil
	}
	names, repeated := map[string]bool{}, false
	for _, q := range queues {
		repeated = repeated || names[q.Name]
		names[q.Name] = true
		row := []string{strings.Join(q.Namespaces, ","), q.Name, Short(heldBy(q), heldWidth), strconv.Itoa(q.Waiting), strconv.Itoa(q.Live), used(q), requests(q.Reserved)}
		if format == Wide {
			row = append(row, q.Strategy, q.ClusterQueue, dash(q.Cohort), dash(pastUse(q.PastUse...)), strings.Join(q.Namespaces, ","))
		}
		t.Rows = append(t.Rows, row)
	}
	if !repeated {
		t.Drop("NAMESPACE")
	}
	if format == Wide && !slices.ContainsFunc(queues, func(q query.Queue) bool { return len(q.PastUse) > 0 }) {
		t.Drop("PAST USE")
	}
	return t
}

// heldWidth is how much of who holds a queue a table shows.
const heldWidth = 24

// heldBy returns who or what holds a queue, in short.
func heldBy(q query.Queue) string {
	if q.Hold != nil {
		return "by " + q.Hold.By
	}
	if q.ClusterQueueHold != nil {
		return "by " + q.ClusterQueueHold.By
	}
	if q.Inactive != "" {
		return "inactive"
	}
	return dash(q.StopPolicy)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
