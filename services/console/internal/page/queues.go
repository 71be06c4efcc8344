package page

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// PageRows is how many rows a page of a list has.
const PageRows = 100

// QueueRow is a queue in a list.
type QueueRow struct {
	Name, Namespaces, Link, Held  string
	Waiting, Provisioning, Live   int
	Strategy, ClusterQueue, Share string
}

func queueRow(q query.Queue, among []query.Queue, now time.Time) QueueRow {
	namespace := ""
	if len(query.Named(among, q.Name, "")) > 1 && len(q.Namespaces) > 0 {
		namespace = q.Namespaces[0]
	}
	return QueueRow{
		Name: q.Name, Namespaces: list(q.Namespaces), Link: QueueLink(q.Name, namespace), Held: output.Held(q, now),
		Waiting: q.Waiting, Provisioning: q.Provisioning, Live: q.Live, Strategy: q.Strategy, ClusterQueue: q.ClusterQueue, Share: output.Share(q),
	}
}

// list writes a few names, and counts the others.
func list(names []string) string {
	const shown = 4
	text := ""
	for i, name := range names[:min(len(names), shown)] {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if more := len(names) - shown; more > 0 {
		text += " and " + number(more) + " more"
	}
	return text
}

// TreeRow is a row of the tree of cohorts: a cohort, a ClusterQueue or a queue.
type TreeRow struct {
	Depth int
	Kind  string // "Cohort", "ClusterQueue" or "queue"
	Name  string
	// Queue is set for a queue.
	Queue *QueueRow
	Share string
	Held  string
	// Waiting and Live are of a ClusterQueue or queue.
	Waiting, Live int
	Quota         []QuotaLine
}

// QuotaLine is a quota and its use.
type QuotaLine struct {
	Name                         string // flavor and resource
	Nominal, Used, Free          string
	Borrowed, Lent               string // empty for none
	UsedNumber, NominalNumber    int64
	Unbounded                    bool
	BorrowingLimit, LendingLimit string
	// More, in place of a line, counts those that are left out.
	More int
}

// Queues is the page of all queues.
type Queues struct {
	Rows []TreeRow
	Paging
}

// MakeQueues makes the tree of cohorts, ClusterQueues and queues, from row from on. Tenants get
// no cohorts, and of ClusterQueues what their queues show.
func MakeQueues(answer query.QueuesAnswer, from int, now time.Time) Queues {
	rows := treeRows(answer, now)
	var q Queues
	q.Rows, q.Paging = cut(rows, from, "/queues?")
	return q
}

// maxDepth bounds the indentation.
const maxDepth = 6

func treeRows(answer query.QueuesAnswer, now time.Time) []TreeRow {
	clusterQueues := query.ClusterQueuesOf(withoutSums(answer.ClusterQueues), answer.Queues)
	byCohort, byClusterQueue, children := map[string][]query.ClusterQueue{}, map[string][]query.Queue{}, map[string][]quota.CohortUsage{}
	known := map[string]bool{}
	for _, c := range answer.Cohorts {
		children[c.Parent] = append(children[c.Parent], c)
		known[c.Name] = true
	}
	for _, c := range clusterQueues {
		if c.Cohort != "" && !known[c.Cohort] {
			known[c.Cohort] = true
			children[""] = append(children[""], quota.CohortUsage{Name: c.Cohort})
		}
		byCohort[c.Cohort] = append(byCohort[c.Cohort], c)
	}
	for _, q := range answer.Queues {
		byClusterQueue[q.ClusterQueue] = append(byClusterQueue[q.ClusterQueue], q)
	}
	var rows []TreeRow
	clusterQueuesOf := func(cohort string, depth int) {
		for _, c := range byCohort[cohort] {
			row := TreeRow{Depth: min(depth, maxDepth), Kind: "ClusterQueue", Name: c.Name, Waiting: c.Waiting, Live: c.Live, Quota: quotaLines(c.Quota, mostOfRow)}
			if c.Hold != nil {
				row.Held = c.Hold.Message()
			} else {
				row.Held = cmp.Or(c.Inactive, c.StopPolicy)
			}
			if cohort != "" {
				row.Share = output.Share(query.Queue{Cohort: cohort, Share: c.Share})
			}
			rows = append(rows, row)
			for _, q := range byClusterQueue[c.Name] {
				of := queueRow(q, answer.Queues, now)
				rows = append(rows, TreeRow{Depth: min(depth+1, maxDepth), Kind: "queue", Name: q.Name, Queue: &of, Held: of.Held, Waiting: q.Waiting, Live: q.Live})
			}
		}
	}
	visited := map[string]bool{}
	var walk func(parent string, depth int)
	walk = func(parent string, depth int) {
		for _, c := range children[parent] {
			if visited[c.Name] {
				continue
			}
			visited[c.Name] = true
			row := TreeRow{Depth: min(depth, maxDepth), Kind: "Cohort", Name: c.Name, Quota: quotaLines(c.Quota, mostOfRow)}
			if c.Parent != "" {
				row.Share = output.Share(query.Queue{Cohort: c.Parent, Share: c.Share})
			}
			rows = append(rows, row)
			walk(c.Name, depth+1)
			clusterQueuesOf(c.Name, depth+1)
		}
	}
	walk("", 0)
	clusterQueuesOf("", 0)
	return rows
}

// withoutSums returns ClusterQueues whose sums are counted again from the queues.
func withoutSums(all []query.ClusterQueue) []query.ClusterQueue {
	cleared := slices.Clone(all)
	for i := range cleared {
		cleared[i].Queues, cleared[i].Waiting, cleared[i].Live, cleared[i].Provisioning = nil, 0, 0, 0
	}
	return cleared
}

// mostOfRow bounds the quotas of a row in the tree, and mostOfQueue those on the page of a queue.
const mostOfRow, mostOfQueue = 8, 256

func quotaLines(lines []quota.Line, most int) []QuotaLine {
	var all []QuotaLine
	for _, l := range lines[:min(len(lines), most)] {
		name := string(l.Resource)
		if l.Flavor != "" {
			name = l.Flavor + " " + name
		}
		line := QuotaLine{Name: name, Used: output.AtMost(l.Resource, l.Used), Unbounded: l.Unbounded, UsedNumber: l.Used, NominalNumber: l.Nominal}
		if !l.Unbounded {
			line.Nominal, line.Free = output.AtLeast(l.Resource, l.Nominal), output.AtLeast(l.Resource, l.Available)
			if l.Borrowed > 0 {
				line.Borrowed = output.AtMost(l.Resource, l.Borrowed)
			}
			if l.Lent > 0 {
				line.Lent = output.AtMost(l.Resource, l.Lent)
			}
			if l.BorrowingLimit != nil {
				line.BorrowingLimit = output.AtLeast(l.Resource, *l.BorrowingLimit)
			}
			if l.LendingLimit != nil {
				line.LendingLimit = output.AtLeast(l.Resource, *l.LendingLimit)
			}
		}
		all = append(all, line)
	}
	if more := len(lines) - len(all); more > 0 {
		all = append(all, QuotaLine{More: more})
	}
	return all
}

// Queue is the page of one queue.
type Queue struct {
	QueueRow
	Namespace string // that the page was asked with; empty for none
	Reserved  string
	Quota     []QuotaLine
	Waits     []WorkloadRow
	Lives     []WorkloadRow
	Next      string // the page with what waits behind; empty on the last
	LiveMore  bool   // there are more live workloads than shown
	Actions   []Action
	Activity  Activity
	Estimates string // what came of them
	Budgets   Table  // with what was used of them
}

// MakeQueue makes the page of a queue from a page of what waits in it, and the first of what
// lives.
func MakeQueue(q query.Queue, namespace string, waiting, live []workload.Record, next string, liveMore bool, actions []Action, now time.Time) Queue {
	page := Queue{
		QueueRow: queueRow(q, nil, now), Namespace: namespace, Reserved: output.Requests(q.Reserved),
		Estimates: output.Score(q.Estimates), Quota: quotaLines(q.Quota, mostOfQueue), Next: next, LiveMore: liveMore, Actions: actions,
		Budgets: tableOf("Budgets", output.Budgets(q.Budgets)),
	}
	for i := range waiting {
		if slices.Contains(q.Namespaces, waiting[i].Namespace) {
			page.Waits = append(page.Waits, row(&waiting[i], now))
		}
	}
	for i := range live {
		if slices.Contains(q.Namespaces, live[i].Namespace) {
			page.Lives = append(page.Lives, row(&live[i], now))
		}
	}
	// An older queue-manager answers in the order of submission.
	slices.SortStableFunc(page.Waits, func(a, b WorkloadRow) int {
		return cmp.Compare(cmp.Or(a.Position, 1<<30), cmp.Or(b.Position, 1<<30))
	})
	return page
}
