package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// quotaTable is what a queue has and uses.
func quotaTable(lines []quota.Line) Table {
	t := Table{Header: []string{"FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED", "LENT", "AVAILABLE", "BORROWING LIMIT", "LENDING LIMIT"}}
	for _, l := range lines {
		amount := func(n int64) string { return resource.Format(l.Resource, n) }
		limit := func(n *int64) string {
			if n == nil {
				return "-"
			}
			return amount(*n)
		}
		row := []string{
			dash(l.Flavor), string(l.Resource), amount(l.Nominal), amount(l.Used), amount(l.Borrowed), amount(l.Lent), amount(l.Available),
			limit(l.BorrowingLimit), limit(l.LendingLimit),
		}
		if l.Unbounded {
			row[2], row[4], row[5], row[6] = "-", "-", "-", "-"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// used prints what is used of each quota, and what of it is borrowed. The name of an only
// flavor adds nothing.
func used(q query.Queue) string {
	bounded := slices.DeleteFunc(slices.Clone(q.Quota), func(l quota.Line) bool { return l.Unbounded })
	several := slices.ContainsFunc(bounded, func(l quota.Line) bool { return l.Flavor != bounded[0].Flavor })
	var parts []string
	for _, l := range bounded {
		flavor := ""
		if several {
			flavor = l.Flavor + " "
		}
		text := fmt.Sprintf("%s%s %s/%s", flavor, l.Resource, atMost(l.Resource, l.Used), atLeast(l.Resource, l.Nominal))
		if l.Borrowed > 0 {
			text += fmt.Sprintf(" (%s borrowed)", atMost(l.Resource, l.Borrowed))
		}
		if l.Lent > 0 {
			text += fmt.Sprintf(" (%s lent)", atMost(l.Resource, l.Lent))
		}
		parts = append(parts, text)
	}
	return dash(strings.Join(parts, ", "))
}

// share prints a queue's share of its cohort; nothing without cohort.
func share(q query.Queue) string {
	switch {
	case q.Cohort == "":
		return ""
	case q.Share == quota.MaxShare:
		return "beyond all others (weight 0)"
	}
	return fmt.Sprintf("%.1f %% of what the cohort lends", float64(q.Share)/10_000)
}

// Explanation is what `explain` prints.
type Explanation struct {
	workload.Explanation
	Name  string         `json:"name"`
	Phase workload.Phase `json:"phase"`
	// LocalQueue is the queue that the workload was submitted to; Queue is its ClusterQueue.
	LocalQueue string `json:"localQueue,omitempty"`
	// Estimate is when it will start, Starts the same for people; empty if that was not
	// estimated.
	Estimate *workload.Estimate `json:"estimate,omitempty"`
	Starts   string             `json:"-"`
	// Certificate is there if it was asked for.
	Certificate *certificate.Document `json:"certificate,omitempty"`
}

// standing returns where a workload stands that does not wait.
func standing(p workload.Phase) string {
	switch p {
	case workload.Admitted:
		return "a node is reserved for each of its pods, and its objects are about to be created"
	case workload.Dispatched:
		return "its objects exist on the nodes that are reserved for it, and its pods are starting"
	case workload.Running:
		return "it runs, with all its pods on the nodes that are reserved for it"
	case workload.Evicting:
		return "it is being torn down, and waits again at its old place when its pods are gone"
	case workload.Cancelling:
		return "it is being torn down, and will not start again"
	case workload.Rejected:
		return "it was refused when it was submitted"
	}
	return "it has ended"
}

// othersShown is how many workloads of other queues are listed.
const othersShown = 4

// others names workloads of other queues. Messages do not, since tenants read them;
// only operators get the ids.
func others(ids []workload.ID) string {
	names := make([]string, 0, othersShown)
	for _, id := range ids[:min(len(ids), othersShown)] {
		names = append(names, Cell(string(id)))
	}
	text := "of other queues: " + strings.Join(names, ", ")
	if more := len(ids) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// weighed compares the victims of a preemption with the best other set; only operators
// get the comparison. The losses since checkpoints did not decide, so it prints what did.
func weighed(c *workload.PreemptionChoice) string {
	if c == nil {
		return ""
	}
	text := fmt.Sprintf("evicting %s loses %d %s", ids(c.Victims, c.VictimCount), c.Cost.Lost, c.Cost.Unit.Seconds())
	if c.Cost.Restart > 0 {
		text += fmt.Sprintf(", and starting again took %d", c.Cost.Restart)
	}
	if len(c.Other) == 0 {
		return text + "; no other sufficient set was found"
	}
	text = fmt.Sprintf("%s; evicting %s instead would have lost %d", text, ids(c.Other, c.OtherCount), c.OtherCost.Lost)
	if c.OtherCost.Unit != c.Cost.Unit {
		text += " " + c.OtherCost.Unit.Seconds()
	}
	if why := decidedBy(c); why != "" {
		text += "; " + why
	}
	return text
}

// decidedBy returns by what the victims were chosen; nothing when it is not known.
func decidedBy(c *workload.PreemptionChoice) string {
	counted := func(unit workload.CostUnit) string {
		return fmt.Sprintf("the choice counts the work since the admissions, whatever checkpoints were reported, and the last starts: %d and %d %s", c.Counted, c.OtherCounted, unit.Seconds())
	}
	switch c.By {
	case workload.ChosenByStrategy:
		return "the choice takes those that the first strategy of fair sharing permits"
	case workload.ChosenByShare:
		return "the choice takes those of queues with larger shares first"
	case workload.ChosenByQueue:
		return "the choice takes those of other queues before those of its own"
	case workload.ChosenByCascade:
		return "the choice spares a gang that would have others evicted when it comes back"
	case workload.ChosenByUse:
		return "the choice takes those of LocalQueues that have used more first"
	case workload.ChosenByPriority:
		return "the choice takes those of lower priority first"
	case workload.ChosenByAccelerators:
		return counted(workload.UnitAccelerators)
	case workload.ChosenByPods:
		return counted(workload.UnitPods)
	case workload.ChosenByGangs:
		return "the choice takes fewer gangs"
	}
	return ""
}

// ids lists a few workloads, and counts the others.
func ids(first []workload.ID, count int) string {
	names := make([]string, 0, othersShown)
	for _, id := range first[:min(len(first), othersShown)] {
		names = append(names, string(id))
	}
	text := strings.Join(names, ", ")
	if more := count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Explain writes why a workload waits and what would admit it.
func Explain(w io.Writer, e Explanation) error {
	fields := []field{{"Workload", e.Name}, {"Id", string(e.Workload)}, {"Phase", string(e.Phase)}, {"Queue", cmp.Or(e.LocalQueue, e.Queue)}}
	if e.LocalQueue != "" && e.LocalQueue != e.Queue {
		fields = append(fields, field{"ClusterQueue", e.Queue})
	}
	if e.Position > 0 {
		fields = append(fields, field{"Position", fmt.Sprintf("%d of %d", e.Position, e.Waiting)})
	}
	if e.PastUse != nil {
		fields = append(fields, field{"Past use", pastUse(*e.PastUse) + "; LocalQueues that have used less go first"})
	}
	fields = append(fields, field{"Starts", e.Starts})
	if e.Reason.Kind != "" {
		fields = append(fields, field{"Reason", string(e.Reason.Kind) + ": " + e.Reason.Message})
	}
	if len(e.Reason.Foreign) > 0 {
		fields = append(fields, field{"Others", others(e.Reason.Foreign)})
	}
	if cause := e.Reason.Preemption; cause != nil {
		fields = append(fields, field{"Weighed", weighed(cause.Choice)})
	}
	fields = append(fields, field{"Eviction", Eviction(e.Eviction)})
	if err := writeFields(w, fields); err != nil {
		return err
	}
	if e.Phase != workload.Queued {
		_, err := fmt.Fprintf(w, "\nIt does not wait in its queue: %s.\n", standing(e.Phase))
		return err
	}
	if err := explainClusters(w, e.Clusters); err != nil {
		return err
	}
	text := "\nNo single change that was tried would admit it now.\n"
	if len(e.Changes) > 0 {
		text = "\nIt would be admitted now with any one of these:\n"
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	for _, c := range e.Changes {
		line := Cell(c.Message)
		if len(c.Foreign) > 0 {
			line += " (" + others(c.Foreign) + ")"
		}
		if _, err := fmt.Fprintf(w, "  - %s\n", line); err != nil {
			return err
		}
	}
	if e.Partial {
		_, err := io.WriteString(w, "There may be others: not all changes were tried, to limit the time.\n")
		return err
	}
	return nil
}
