package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/console/internal/page"
	"muster.dev/muster/services/internal/client/overhttp"
)

// change is something that a caller may ask of a workload, a queue or a cluster: the inputs of its form and
// the request to the HTTP API, which judges it.
type change struct {
	name, label string
	// effect is what happens, for the confirmation.
	effect string
	// operators: the HTTP API takes it from operators alone.
	operators bool
	inputs    []page.Input
	// ofWorkload reports whether it is worth asking of a workload now.
	ofWorkload func(r *workload.Record) bool
	askOf      func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error
}

const longestWhy = 1000

func why() page.Input { return page.Input{Name: "why", Label: "Reason", Longest: longestWhy} }

func waits(r *workload.Record) bool {
	return r.Phase == workload.Queued || r.Phase == workload.Evicting
}

// workloadChanges are what may be asked of a workload.
func workloadChanges() []change {
	return []change{
		{
			name: "cancel", label: "Cancel", effect: "End the workload for good. What of it runs is deleted.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool { return !r.Phase.Final() && !r.CancelRequested },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.Cancel(ctx, id, form.Get("why"))
			},
		},
		{
			name: "hold", label: "Hold", effect: "Keep the workload from admission until it is resumed. It keeps its place in the queue, and others pass it.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool { return waits(r) && r.Hold == nil },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.HoldWorkload(ctx, id, false, form.Get("why"))
			},
		},
		{
			name: "resume", label: "Resume", effect: "Let the held workload be admitted again.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool { return r.Hold != nil },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.HoldWorkload(ctx, id, true, form.Get("why"))
			},
		},
		{
			name: "move", label: "Move", effect: "Have the waiting workload wait in another queue.",
			inputs:     []page.Input{{Name: "queue", Label: "To the queue", Longest: 253, Required: true}, why()},
			ofWorkload: func(r *workload.Record) bool { return r.Phase == workload.Queued },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.Move(ctx, id, form.Get("queue"), form.Get("why"))
			},
		},
		{
			name: "requeue", label: "Requeue", effect: "Take the workload down, and have it wait again at its place by submission. What it has not saved is lost.", inputs: []page.Input{why()},
			ofWorkload: func(r *workload.Record) bool {
				return slices.Contains([]workload.Phase{workload.Admitted, workload.Dispatched, workload.Running}, r.Phase)
			},
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				return api.Requeue(ctx, id, form.Get("why"))
			},
		},
		{
			name: "priority", label: "Set priority", effect: "Set the priority of the workload. A higher number comes first, and may have others evicted.", operators: true,
			inputs:     []page.Input{{Name: "value", Label: "Priority", Longest: 11, Number: true, Required: true}, why()},
			ofWorkload: func(r *workload.Record) bool { return !r.Phase.Final() },
			askOf: func(ctx context.Context, api *overhttp.Client, id workload.ID, form url.Values) error {
				value, err := strconv.ParseInt(form.Get("value"), 10, 32)
				if err != nil {
					return refuse(http.StatusBadRequest, "Priority %.20q: want a whole number of 32 bits.", form.Get("value"))
				}
				return api.SetPriority(ctx, id, int32(value), form.Get("why"))
			},
		},
	}
}

// workloadActions are the changes that the caller may ask of a workload now.
func (s *Server) workloadActions(c *caller, r workload.Record) []page.Action {
	var all []page.Action
	for _, change := range workloadChanges() {
		if s.Actions && (c.Operator || !change.operators) && change.ofWorkload(&r) {
			all = append(all, page.Action{Name: change.name, Label: change.label, Link: page.WorkloadLink(r.ID) + "/" + change.name})
		}
	}
	return all
}

// queueActions are those that the caller may ask of a queue now.
func (s *Server) queueActions(c *caller, q query.Queue, namespace string) []page.Action {
	if !s.Actions || !c.Operator {
		return nil
	}
	name, label := "hold", "Hold"
	if q.Hold != nil {
		name, label = "resume", "Resume"
	}
	link := "/queues/" + url.PathEscape(q.Name) + "/" + name
	if namespace != "" {
		link += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	return []page.Action{{Name: name, Label: label, Link: link}}
}

// clusterChanges are what may be asked of a cluster.
func clusterChanges() []change {
	return []change{
		{name: "cordon", label: "Cordon", effect: "Admit nothing in the cluster until it is uncordoned. What runs there goes on, and those who wait see the reason.", operators: true, inputs: []page.Input{why()}},
		{name: "drain", label: "Drain", effect: "Admit nothing in the cluster, and evict its workloads, which start again in others. What they have not saved is lost.", operators: true, inputs: []page.Input{why()}},
		{name: "uncordon", label: "Uncordon", effect: "Admit workloads in the cluster again.", operators: true},
	}
}

// clusterActions are those that the caller may ask of a cluster now.
func (s *Server) clusterActions(c *caller, cluster query.ClusterStatus) []page.Action {
	if !s.Actions || !c.Operator || cluster.Cordon != nil && cluster.Cordon.Left {
		return nil
	}
	var all []page.Action
	for _, change := range clusterChanges() {
		if is := cluster.Cordon != nil; change.name == "cordon" && is || change.name == "uncordon" && !is || change.name == "drain" && is && cluster.Cordon.Drain {
			continue
		}
		all = append(all, page.Action{Name: change.name + "-" + cluster.Name, Label: change.label, Link: "/clusters/" + url.PathEscape(cluster.Name) + "/" + change.name})
	}
	return all
}

// asked is the label of the action that the caller has just asked for; empty for none.
func asked(r *http.Request) string {
	for _, t := range targets() {
		if t.change.name == r.URL.Query().Get("asked") {
			return t.change.label
		}
	}
	return ""
}
