package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

// Operation is something that can be asked for.
type Operation struct {
	ID, Method, Path, Summary string
	// Parameters in the query or a header; those of the path are in Path.
	Parameters []Parameter
	// Manifest: the body is a manifest, in JSON or YAML.
	Manifest bool
	// Body, unless nil, is of the type of the body, in JSON.
	Body any
	// Operators: only operators may ask for it.
	Operators bool
	// Stream: the answer is server-sent events, each with Answer as data.
	Stream bool
	// Status and Answer are of success; with Accepted 202 may come, too.
	Status   int
	Accepted bool
	Answer   any
	// Refusals are the statuses of a Problem that this operation has of its own.
	Refusals []int
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name, What string
	Header     bool
	Number     bool
}

// Operations lists all of them.
func Operations() []Operation {
	return slices.Concat(workloadOperations(), requestOperations(), queueOperations(), reportOperations(), operatorOperations())
}

// workloadOperations submit a workload, show it and end it.
func workloadOperations() []Operation {
	return []Operation{
		{
			ID: "submit", Method: http.MethodPost, Path: "/v1/queues/{queue}/workloads",
			Summary: "Submit a RayCluster, RayJob, RayService or AppWrapper manifest; answered when it is stored or refused", Manifest: true,
			Parameters: []Parameter{
				{Name: "priority", What: "A higher number comes first.", Number: true},
				{Name: "priorityClass", What: "The WorkloadPriorityClass that gives the priority."},
				{Name: IdempotencyKey, What: "The id of the submission: with it, sending the same again is the same workload. A fresh one if it is missing.", Header: true},
			},
			Status: http.StatusCreated, Accepted: true, Answer: &Submission{},
			Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
		},
		{
			ID: "list", Method: http.MethodGet, Path: "/v1/workloads", Summary: "List the workloads that the caller may see, in the order of submission or of their queues",
			Parameters: []Parameter{
				{Name: "queue", What: "Only those of this queue."}, {Name: "namespace", What: "Only those of this namespace."},
				{Name: "name", What: "Only those of this name."}, {Name: "phase", What: "Only those in one of these phases, separated by commas."},
				{Name: "labelSelector", What: "Only those whose manifest has such labels, as kubectl takes it: team=a,stage!=test. Of an AppWrapper the labels of its first object count."},
				{Name: "order", What: "position: by queue, and in each queue in the order in which it considers them; with phase=queued only. In the order of submission if it is missing."},
				{Name: "limit", What: "The most workloads to look at, up to 500.", Number: true},
				{Name: "after", What: "The next of the page before: the id of its last workload. A page has a next as long as there are more."},
			},
			Status: http.StatusOK, Answer: &WorkloadsPage{}, Refusals: []int{http.StatusNotImplemented},
		},
		{ID: "describe", Method: http.MethodGet, Path: "/v1/workloads/{id}", Summary: "Show a workload and its history", Status: http.StatusOK, Answer: &Description{}, Refusals: []int{http.StatusNotFound}},
		{
			ID: "manifest", Method: http.MethodGet, Path: "/v1/workloads/{id}/manifest", Summary: "Show the manifest of a workload as it was submitted, with its secrets masked",
			Status: http.StatusOK, Answer: &query.ManifestAnswer{}, Refusals: []int{http.StatusNotFound},
		},
		{
			ID: "explain", Method: http.MethodGet, Path: "/v1/workloads/{id}/explanation", Summary: "Explain why a workload waits, and what would admit it",
			Parameters: []Parameter{{Name: "certificate", What: "With true the answer also has a proof, which `muster verify` checks, that the workload cannot start now; or why there is none."}},
			Status:     http.StatusOK, Answer: &query.ExplainAnswer{}, Refusals: []int{http.StatusNotFound, http.StatusTooManyRequests},
		},
		{
			ID: "follow", Method: http.MethodGet, Path: "/v1/workloads/{id}/events", Summary: "Stream the events of a workload, from its present state to its end",
			Parameters: spanParameters("the present state"),
			Stream:     true, Status: http.StatusOK, Answer: &event.WorkloadChanged{}, Refusals: []int{http.StatusNotFound},
		},
		{
			ID: "cancel", Method: http.MethodDelete, Path: "/v1/workloads/{id}", Summary: "End a workload in any phase",
			Parameters: []Parameter{{Name: "why", What: "A reason to store with it."}}, Status: http.StatusAccepted, Answer: &Cancelling{}, Refusals: []int{http.StatusNotFound},
		},
	}
}

// spanParameters choose the events of a stream.
func spanParameters(otherwise string) []Parameter {
	return []Parameter{
		{Name: "since", What: "Begin with the events from this time on, as RFC 3339, as far as they are kept; without it with " + otherwise + "."},
		{Name: "follow", What: "With false the answer ends with what has happened."},
	}
}

// queueOperations show the caller and queues.
func queueOperations() []Operation {
	return []Operation{
		{ID: "caller", Method: http.MethodGet, Path: "/v1/caller", Summary: "Show the caller's name, and whether it is an operator", Status: http.StatusOK, Answer: &Caller{}},
		{ID: "listQueues", Method: http.MethodGet, Path: "/v1/queues", Summary: "List the queues that may be submitted to", Status: http.StatusOK, Answer: &query.QueuesAnswer{}},
		{
			ID: "describeQueue", Method: http.MethodGet, Path: "/v1/queues/{queue}", Summary: "Show a queue: quota, use, waiting workloads",
			Parameters: []Parameter{{Name: "namespace", What: "The namespace of the queue, where several have one of its name."}},
			Status:     http.StatusOK, Answer: &query.Queue{}, Refusals: []int{http.StatusNotFound},
		},
		{
			ID: "followQueue", Method: http.MethodGet, Path: "/v1/queues/{queue}/events", Summary: "Stream the events of a queue",
			Parameters: spanParameters("the last event of each workload"),
			Stream:     true, Status: http.StatusOK, Answer: &event.WorkloadChanged{}, Refusals: []int{http.StatusNotFound},
		},
		{
			ID: "followAll", Method: http.MethodGet, Path: "/v1/events", Summary: "Stream the events of all workloads that the caller may see, and for operators the changes of clusters",
			Parameters: spanParameters("the last event of each workload"),
			Stream:     true, Status: http.StatusOK, Answer: &event.WorkloadChanged{},
		},
	}
}

// reportOperations sum over many workloads, or try something. Each caller may have one under way.
func reportOperations() []Operation {
	return []Operation{
		{
			ID: "usage", Method: http.MethodGet, Path: "/v1/usage", Summary: "Show what was used of the workloads that the caller may see: resources times seconds, and waits",
			Parameters: []Parameter{
				{Name: "since", What: "The beginning of the report, as RFC 3339."}, {Name: "until", What: "Its end; the present if it is missing."},
				{Name: "by", What: "The keys of the rows, separated by commas: " + strings.Join(query.UsageKeys(), ", ") + "."},
				{Name: "queue", What: "Only what is of this queue."}, {Name: "namespace", What: "Only what is of this namespace."},
				{Name: "resource", What: "Only these resources, separated by commas."},
				{Name: "price", What: "Prices of an hour of a unit, separated by commas: RESOURCE=NUMBER, or FLAVOR:RESOURCE=NUMBER."},
			},
			Status: http.StatusOK, Answer: &query.UsageAnswer{}, Refusals: []int{http.StatusTooManyRequests},
		},
		{
			ID: "activity", Method: http.MethodGet, Path: "/v1/activity", Summary: "Show how many of the workloads that the caller may see were submitted, admitted, evicted, ended and waiting over time",
			Parameters: []Parameter{
				{Name: "since", What: "The beginning, as RFC 3339; at most seven days ago."}, {Name: "step", What: "The length of a step in seconds.", Number: true},
				{Name: "queue", What: "Only what is of this queue."},
			},
			Status: http.StatusOK, Answer: &query.ActivityAnswer{}, Refusals: []int{http.StatusTooManyRequests},
		},
		{
			ID: "whatIf", Method: http.MethodPost, Path: "/v1/whatif", Summary: "Show what a change would do to running and waiting workloads; nothing is changed. Tenants may try other priorities, queues and numbers of pods of their waiting workloads, and submissions; they get what becomes of workloads that they may see",
			Body:   &query.WhatIfRequest{},
			Status: http.StatusOK, Answer: &query.WhatIfAnswer{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusTooManyRequests},
		},
	}
}
