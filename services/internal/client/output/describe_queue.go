package output

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Queue is what `describe queue` prints.
type Queue struct {
	query.Queue
	Workloads []workload.Record `json:"workloads"` // those that wait or live
}

// DescribeQueue writes a queue and what is in it.
func DescribeQueue(w io.Writer, d Queue, now time.Time) error {
	fields := []field{
		{"Name", d.Name}, {"Strategy", d.Strategy}, {"Held", held(d.Queue, now)}, {"Namespaces", strings.Join(d.Namespaces, ", ")},
		{"Cohort", d.Cohort}, {"Share", share(d.Queue)}, {"Past use", pastUse(d.PastUse...)},
		{"Waiting", waitingOf(d.Queue)}, {"Live", strconv.Itoa(d.Live)}, {"Reserved", requests(d.Reserved)},
		{"Estimates", Score(d.Estimates)},
	}
	if d.ClusterQueue != d.Name {
		fields = append(fields, field{"Cluster queue", d.ClusterQueue})
	}
	if err := writeFields(w, fields); err != nil {
		return err
	}
	if err := section(w, "Quota", quotaTable(d.Quota)); err != nil {
		return err
	}
	if err := section(w, "Budgets", Budgets(d.Budgets)); err != nil {
		return err
	}
	return section(w, "Workloads", Workloads(d.Workloads, Text, now))
}

// Budgets is the table of the budgets of a queue, with what was used of them.
func Budgets(all []query.Budget) Table {
	t := Table{Header: []string{"BUDGET", "RESOURCE", "USED HOURS", "OF", "PERIOD", "UNTIL", "ACTION"}}
	for i := range all {
		b := &all[i]
		action := b.Action
		if b.Holds {
			action += ", holds the queue"
		} else if b.UsedUp() {
			action += ", used up"
		}
		t.Rows = append(t.Rows, []string{
			b.Name, string(b.Resource), strconv.FormatFloat(b.UsedHours, 'f', 2, 64), strconv.FormatInt(b.Hours, 10), b.Period, b.Until.Format(time.DateOnly), action,
		})
	}
	return t
}

// waitingOf counts what waits, and what of it holds quota.
func waitingOf(q query.Queue) string {
	if q.Provisioning == 0 {
		return strconv.Itoa(q.Waiting)
	}
	return fmt.Sprintf("%d, of which %d hold quota while nodes, or AdmissionChecks, are asked", q.Waiting, q.Provisioning)
}

// held returns who or what holds a queue; empty when nothing does.
func held(q query.Queue, now time.Time) string {
	var parts []string
	if h := q.Hold; h != nil && h.Namespace != "" && len(q.Namespaces) > 1 {
		parts = append(parts, stopText(*h, now)+", in namespace "+h.Namespace)
	} else if h != nil {
		parts = append(parts, stopText(*h, now))
	}
	if h := q.ClusterQueueHold; h != nil {
		parts = append(parts, stopText(*h, now)+", with its ClusterQueue "+h.Name)
	}
	for i := range q.Budgets {
		if b := &q.Budgets[i]; b.Holds {
			parts = append(parts, "its "+b.Message())
		}
	}
	if q.Inactive != "" {
		parts = append(parts, "itself: "+q.Inactive)
	}
	switch q.StopPolicy {
	case "":
	case quota.Deleting:
		parts = append(parts, "the deletion of its ClusterQueue or LocalQueue")
	default:
		parts = append(parts, "stopPolicy "+q.StopPolicy)
	}
	return strings.Join(parts, ", and by ")
}

func stopText(h quota.QueueStop, now time.Time) string {
	text := fmt.Sprintf("by %s since %s", h.By, at(h.Since, now))
	if h.Why != "" {
		text += ": " + h.Why
	}
	return text
}
