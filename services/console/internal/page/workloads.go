package page

import (
	"net/url"
	"strconv"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

// WorkloadRow is a workload in a list.
type WorkloadRow struct {
	Link, Title, Namespace, Name, Kind, Queue string
	Phase, Age, Starts, Reason                string
	Position, Priority, Pods, Attempt         int
	PhaseClass                                string
}

// longestReason bounds a reason in a list, and longestPast one of the past; the page of the
// workload has all of the present one.
const longestReason, longestPast = 240, 500

func row(r *workload.Record, now time.Time) WorkloadRow {
	return WorkloadRow{
		Link: WorkloadLink(r.ID), Title: r.Title(), Namespace: r.Namespace, Name: r.Name, Kind: r.Kind, Queue: r.Queue,
		Phase: output.Phase(r), PhaseClass: string(r.Phase), Age: output.Age(r.Times.Submitted, now), Starts: output.Starts(r, now),
		Reason: output.Short(output.Brief(r.Reason), longestReason), Position: int(r.Position), Priority: int(r.Priority), Pods: r.Pods(), Attempt: r.Attempt,
	}
}

// Workloads is the page of a list of workloads.
type Workloads struct {
	Filter Filter
	Rows   []WorkloadRow
	// First and Next are links to other pages; empty where there are none.
	First, Next string
}

// Filter is what a list is of, as in the address of the page.
type Filter struct{ Queue, Namespace, Name, Phase, Labels string }

// Phases lists all phases for a form.
func (Filter) Phases() []workload.Phase { return workload.Phases() }

// Waiting reports whether the list is of what waits, which is in the order of the queues.
func (f Filter) Waiting() bool { return f.Phase == string(workload.Queued) }

// WaitingLink is the list of what waits, of the same queue and namespace.
func (f Filter) WaitingLink() string {
	values := url.Values{"phase": {string(workload.Queued)}}
	for name, value := range map[string]string{"queue": f.Queue, "namespace": f.Namespace} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return "/workloads?" + values.Encode()
}

// MakeWorkloads makes the page of a list.
func MakeWorkloads(filter Filter, records []workload.Record, first, next string, now time.Time) Workloads {
	w := Workloads{Filter: filter, First: first, Next: next}
	for i := range records {
		w.Rows = append(w.Rows, row(&records[i], now))
	}
	return w
}

// Workload is the page of one workload.
type Workload struct {
	ID        workload.ID
	Title     string
	Phase     string
	PhaseCSS  string
	Reason    string
	Fields    []Field
	QueueLink string
	Manifest  string // its page
	// WhatIf is the form that tries changes of it, and WhatIfOf what may be changed; empty after
	// its end.
	WhatIf, WhatIfOf string
	// Changes are what would admit it now; Partial means that others were not tried, and
	// NotExplained why there is no explanation.
	Explained    bool
	Changes      []string
	Partial      bool
	NotExplained string
	PodSets      []PodSetRow
	Placements   []PlacementRow
	PlacesMore   int
	Timeline     []Event
	EventsMore   int
	Estimates    Table // that were made while it waited
	WaysWhen     string
	Ways         []output.Way
	Elsewhere    []External
	Actions      []Action
}

// PodSetRow is a pod set of a workload.
type PodSetRow struct {
	Name, Role, Requests string
	Count, Placed        int
}

// PlacementRow is a node with pods of a workload.
type PlacementRow struct {
	PodSet, Node, Link string
	Pods               int
}

// Event is an entry of a workload's timeline.
type Event struct {
	At             time.Time
	After, Phase   string
	PhaseClass     string
	Attempt        int
	Reason         string
	AttemptChanged bool
	// Decisions is the page of what was decided then; empty for tenants.
	Decisions string
}

// Action is something that the caller may ask of a workload, a queue or a cluster now. No two of
// a page have one name.
type Action struct{ Name, Label, Link string }

// mostPlacements and mostEvents bound the lists of a workload's page.
const (
	mostPlacements = 512
	mostEvents     = 200
)

// MakeWorkload makes the page of a workload, with links to its pages elsewhere. explained is nil where there is no explanation, and
// notExplained is then why.
func MakeWorkload(d httpapi.Description, explained *query.ExplainAnswer, notExplained string, actions []Action, elsewhere Elsewhere, now time.Time) Workload {
	r, history := d.Record, d.History
	w := Workload{
		ID: r.ID, Title: r.Title(), Phase: output.Phase(&r), PhaseCSS: string(r.Phase), Reason: output.Reason(r.Reason), QueueLink: QueueLink(r.Queue, r.Namespace), Manifest: WorkloadLink(r.ID) + "/manifest",
		Fields: fields(&r, now), NotExplained: notExplained, Actions: actions, Elsewhere: elsewhere.of(&r),
	}
	if !r.Phase.Final() {
		w.WhatIf, w.WhatIfOf = "/whatif?workload="+url.QueryEscape(string(r.ID)), "priority"
	}
	if r.Phase == workload.Queued {
		w.WhatIfOf = "priority, queue or size"
	}
	if explained != nil && explained.Eviction != nil {
		w.Fields = append(w.Fields, Field{"Eviction", output.Eviction(explained.Eviction)})
	}
	if explained != nil && r.Phase == workload.Queued {
		w.Explained, w.Partial = true, explained.Partial
		for _, c := range explained.Changes {
			w.Changes = append(w.Changes, c.Message)
		}
		w.Changes = bounded(w.Changes)
	}
	placed := map[string]int{}
	for _, p := range r.Placements {
		placed[p.PodSet] += p.Pods
	}
	for _, set := range r.PodSets {
		w.PodSets = append(w.PodSets, PodSetRow{Name: set.Name, Role: set.Role, Requests: output.Requests(set.Template.Requests), Count: set.Count, Placed: placed[set.Name]})
	}
	for _, p := range r.Placements[:min(len(r.Placements), mostPlacements)] {
		w.Placements = append(w.Placements, PlacementRow{PodSet: p.PodSet, Node: p.Node, Link: NodeLink(r.Cluster, p.Node), Pods: p.Pods})
	}
	w.PlacesMore = len(r.Placements) - len(w.Placements)
	w.EventsMore = max(0, len(history)-mostEvents)
	for i, e := range history[w.EventsMore:] {
		event := Event{At: e.At, Phase: string(e.Phase), PhaseClass: string(e.Phase), Attempt: e.Attempt, Reason: output.Short(output.Reason(e.Reason), longestPast)}
		if i+w.EventsMore > 0 {
			event.After = output.Age(history[0].At, e.At)
			event.AttemptChanged = e.Attempt != history[i+w.EventsMore-1].Attempt
		}
		w.Timeline = append(w.Timeline, event)
	}
	w.Estimates = tableWithin(mostTable/4, "Earlier estimates of its start", output.PastEstimates(d.Estimates, history))
	w.WaysWhen, w.Ways = output.Ways(&r)
	return w
}

// LinkDecisions links each entry of the timeline to what was decided then.
func (w *Workload) LinkDecisions() {
	for i := range w.Timeline {
		w.Timeline[i].Decisions = decisionsLink(w.ID, w.Timeline[i].At)
	}
}

func fields(r *workload.Record, now time.Time) []Field {
	position := ""
	if r.Position > 0 {
		position = strconv.Itoa(int(r.Position)) + " in queue " + r.Queue
	}
	all := []Field{
		{"Kind", r.Kind}, {"Priority", strconv.Itoa(int(r.Priority))}, {"Position", position}, {"Starts", output.StartsIn(r, now)},
		{"Hold", r.Hold.Message()}, {"Attempt", strconv.Itoa(r.Attempt)}, {"Cluster", r.Cluster}, {"Submitter", r.Submitter},
		{"Asks", output.Requests(r.Requests())}, {"Submitted", dated(r.Times.Submitted, now)}, {"Admitted", dated(r.Times.Admitted, now)},
		{"Dispatched", dated(r.Times.Dispatched, now)}, {"Running", dated(r.Times.Running, now)}, {"Finished", dated(r.Times.Finished, now)},
		{"Ran", output.Ran(r, now)}, {"Checkpoint", dated(r.Saved().Last(r.Attempt), now)}, {"ID", string(r.ID)},
	}
	var filled []Field
	for _, f := range all {
		if f.Value != "" {
			filled = append(filled, f)
		}
	}
	return filled
}

func dated(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC") + " (" + output.Age(t, now) + " ago)"
}
