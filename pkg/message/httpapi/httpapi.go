// Package httpapi describes the requests and answers of intake's HTTP API: the
// operations as data, and the types that are not those of messages (package event) or
// questions (package query). The OpenAPI document is made of it.
//
// It is not the server, which is in intake.
package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Submission is the result of a submission.
type Submission struct {
	Workload workload.ID `json:"workload"`
	Queue    string      `json:"queue"`
	// Source and ID name the submission for ever; submitting the same content
	// under them again is the same workload.
	Source string `json:"source"`
	ID     string `json:"id"`
	// Record is the workload as stored; absent until it is stored.
	Record *workload.Record `json:"record,omitempty"`
}

// Description is a workload with its life.
type Description struct {
	workload.Record
	History []query.HistoryEntry `json:"history"`
}

// WorkloadsPage is a page of workloads in the order of submission.
type WorkloadsPage struct {
	Workloads []workload.Record `json:"workloads"`
	// Next is the after of the following page: the last workload of this one. It is absent
	// on the last page.
	Next workload.ID `json:"next,omitempty"`
}

// Cancelling names the workload to end.
type Cancelling struct {
	Workload workload.ID `json:"workload"`
}

// Moving names the workload to move, and the queue where it is to wait.
type Moving struct {
	Workload workload.ID `json:"workload"`
	Queue    string      `json:"queue"`
}

// Releasing names the workload whose places are to be freed.
type Releasing struct {
	Workload workload.ID `json:"workload"`
}

// Changing names the workload that is to be changed.
type Changing struct {
	Workload workload.ID `json:"workload"`
}

// Caller is as whom a request is answered.
type Caller struct {
	// Name is that of the token or certificate; queues know the caller as http/NAME.
	Name string `json:"name"`
	// Operator: the caller sees and changes what is of others, too.
	Operator bool `json:"operator,omitempty"`
}

// Clusters are the clusters that Muster knows.
type Clusters struct {
	Clusters []query.ClusterStatus `json:"clusters"`
}

// Reservations are the reservations of nodes that were made.
type Reservations struct {
	Reservations []quota.Reservation `json:"reservations"`
}

// Problem is the answer to a request that failed.
type Problem struct {
	Error string `json:"error"`
	// Reason is set when Muster refused a submission.
	Reason *workload.Reason `json:"reason,omitempty"`
}

// IdempotencyKey is the header with the id of a submission.
const IdempotencyKey = "Idempotency-Key"

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
	// Status and Answer are of success; Accepted says that 202 may come, too.
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
			ID: "list", Method: http.MethodGet, Path: "/v1/workloads", Summary: "List the workloads that the caller may see, in the order of submission",
			Parameters: []Parameter{
				{Name: "queue", What: "Only those of this queue."}, {Name: "namespace", What: "Only those of this namespace."},
				{Name: "name", What: "Only those of this name."}, {Name: "phase", What: "Only those in one of these phases, separated by commas."},
				{Name: "labelSelector", What: "Only those whose manifest has such labels, as kubectl takes it: team=a,stage!=test. Of an AppWrapper the labels of its first object count."},
				{Name: "limit", What: "The most workloads to look at, up to 500.", Number: true},
				{Name: "after", What: "The next of the page before: the id of its last workload. A page has a next as long as there are more."},
			},
			Status: http.StatusOK, Answer: &WorkloadsPage{}, Refusals: []int{http.StatusNotImplemented},
		},
		{ID: "describe", Method: http.MethodGet, Path: "/v1/workloads/{id}", Summary: "Show a workload and its history", Status: http.StatusOK, Answer: &Description{}, Refusals: []int{http.StatusNotFound}},
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
		{ID: "caller", Method: http.MethodGet, Path: "/v1/caller", Summary: "Show as whom the request is answered", Status: http.StatusOK, Answer: &Caller{}},
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
	}
}

// reportOperations sum over many workloads, or try something. Each caller may have one under way.
func reportOperations() []Operation {
	return []Operation{
		{
			ID: "usage", Method: http.MethodGet, Path: "/v1/usage", Summary: "Show what was used of the workloads that the caller may see: resources times seconds, and waits",
			Parameters: []Parameter{
				{Name: "since", What: "The begin of the report, as RFC 3339."}, {Name: "until", What: "Its end; the present if it is missing."},
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
				{Name: "since", What: "The begin, as RFC 3339; at most seven days ago."}, {Name: "step", What: "The length of a step in seconds.", Number: true},
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

// requestOperations change a workload that was submitted.
func requestOperations() []Operation {
	return []Operation{
		{
			ID: "move", Method: http.MethodPost, Path: "/v1/workloads/{id}/move", Summary: "Move a waiting workload to another queue; its next event says whether it was moved",
			Parameters: []Parameter{{Name: "queue", What: "The queue to wait in from now on."}, {Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Moving{}, Refusals: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "holdWorkload", Method: http.MethodPut, Path: "/v1/workloads/{id}/hold", Summary: "Keep a waiting workload from admission until it is resumed; its next event says whether it is held",
			Parameters: []Parameter{{Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Changing{}, Refusals: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "resumeWorkload", Method: http.MethodDelete, Path: "/v1/workloads/{id}/hold", Summary: "Let a held workload be admitted again; a hold of an operator is for operators to end",
			Parameters: []Parameter{{Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Changing{}, Refusals: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "requeue", Method: http.MethodPost, Path: "/v1/workloads/{id}/requeue", Summary: "Take an admitted workload down and queue it again, at its place by submission",
			Parameters: []Parameter{{Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Changing{}, Refusals: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "setPriority", Method: http.MethodPut, Path: "/v1/workloads/{id}/priority", Summary: "Set the priority of a waiting or running workload", Operators: true,
			Parameters: []Parameter{{Name: "value", What: "The priority; a higher number comes first.", Number: true}, {Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Changing{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
	}
}

// operatorOperations are for operators alone: they tell of all queues, or change what others
// wait for.
func operatorOperations() []Operation {
	return []Operation{
		{
			ID: "release", Method: http.MethodPost, Path: "/v1/workloads/{id}/release", Summary: "Free the places of a workload although its objects may still exist", Operators: true,
			Parameters: []Parameter{{Name: "why", What: "The reason, which is kept with the workload; it may not be empty."}},
			Status:     http.StatusAccepted, Answer: &Releasing{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "holdQueue", Method: http.MethodPut, Path: "/v1/queues/{queue}/hold", Summary: "Admit nothing of a queue until it is resumed", Operators: true,
			Parameters: []Parameter{
				{Name: "why", What: "A reason, which those who wait see."}, {Name: "namespace", What: "The namespace in which the queue is held, where several have one of its name."},
				{Name: "allNamespaces", What: "With true the queues of the name in all namespaces are held."},
			},
			Status: http.StatusOK, Answer: &query.Queue{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "resumeQueue", Method: http.MethodDelete, Path: "/v1/queues/{queue}/hold", Summary: "Admit workloads of a held queue again", Operators: true,
			Parameters: []Parameter{
				{Name: "namespace", What: "The namespace of the hold, if it is of one."},
				{Name: "allNamespaces", What: "With true a hold of all namespaces ends, where several have a queue of its name."},
			},
			Status: http.StatusOK, Answer: &query.Queue{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "holdClusterQueue", Method: http.MethodPut, Path: "/v1/clusterqueues/{clusterQueue}/hold", Summary: "Admit nothing of a ClusterQueue until it is resumed", Operators: true,
			Parameters: []Parameter{{Name: "why", What: "A reason, which those who wait see."}},
			Status:     http.StatusOK, Answer: &query.ClusterQueue{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "resumeClusterQueue", Method: http.MethodDelete, Path: "/v1/clusterqueues/{clusterQueue}/hold", Summary: "Admit workloads of a held ClusterQueue again", Operators: true,
			Status: http.StatusOK, Answer: &query.ClusterQueue{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "cordonCluster", Method: http.MethodPut, Path: "/v1/clusters/{cluster}/cordon", Summary: "Admit nothing in a cluster until it is uncordoned", Operators: true,
			Parameters: []Parameter{
				{Name: "why", What: "A reason, which those who wait see."},
				{Name: "drain", What: "With true the workloads of the cluster are evicted, too, and start again in others."},
			},
			Status: http.StatusOK, Answer: &query.ClusterStatus{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "uncordonCluster", Method: http.MethodDelete, Path: "/v1/clusters/{cluster}/cordon", Summary: "Admit workloads in a cordoned or drained cluster again", Operators: true,
			Status: http.StatusOK, Answer: &query.ClusterStatus{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "reserve", Method: http.MethodPut, Path: "/v1/reservations/{reservation}", Summary: "Reserve nodes for a time, or replace the reservation of that name", Operators: true,
			Parameters: []Parameter{
				{Name: "from", What: "When it begins, such as 2026-12-01T08:00:00Z."}, {Name: "until", What: "When it ends."},
				{Name: "node", What: "The names of the nodes, separated by commas."}, {Name: "label", What: "Instead, labels that the nodes have, such as pool=a100, separated by commas."},
				{Name: "cluster", What: "Only nodes of this cluster."}, {Name: "clusterQueue", What: "The ClusterQueue that the nodes are for. Without it, user and workload they are for maintenance."},
				{Name: "user", What: "The submitter whom the nodes are for."}, {Name: "workload", What: "The workload that the nodes are for: an id, or namespace/name."},
				{Name: "evict", What: "With true what still runs on the nodes when it begins is evicted."}, {Name: "why", What: "A reason, which those who wait see."},
			},
			Status: http.StatusOK, Answer: &quota.Reservation{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "unreserve", Method: http.MethodDelete, Path: "/v1/reservations/{reservation}", Summary: "Delete a reservation of nodes", Operators: true,
			Status: http.StatusOK, Answer: &quota.Reservation{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound},
		},
		{
			ID: "listReservations", Method: http.MethodGet, Path: "/v1/reservations", Summary: "List reservations of nodes", Operators: true,
			Status: http.StatusOK, Answer: &Reservations{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "listNodes", Method: http.MethodGet, Path: "/v1/nodes", Summary: "List nodes and what is free on them", Operators: true,
			Status: http.StatusOK, Answer: &query.NodesAnswer{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "demand", Method: http.MethodGet, Path: "/v1/demand", Summary: "Show what waiting gangs lack that more nodes would give them", Operators: true,
			Status: http.StatusOK, Answer: &query.DemandAnswer{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "listClusters", Method: http.MethodGet, Path: "/v1/clusters", Summary: "List clusters, and when each reported last", Operators: true,
			Status: http.StatusOK, Answer: &Clusters{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "listApplied", Method: http.MethodGet, Path: "/v1/applied", Summary: "List the applied objects that configure queues", Operators: true,
			Status: http.StatusOK, Answer: &query.AppliedAnswer{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "listDecisions", Method: http.MethodGet, Path: "/v1/decisions", Summary: "List recorded decisions, the newest first: on what each was decided, and what came of it", Operators: true,
			Parameters: []Parameter{
				{Name: "until", What: "Leave out what was decided after this time, as RFC 3339."}, {Name: "before", What: "The next of the page before, as EPOCH-NUMBER."},
				{Name: "limit", What: "The most decisions, up to 50.", Number: true},
			},
			Status: http.StatusOK, Answer: &query.DecisionsAnswer{}, Refusals: []int{http.StatusForbidden, http.StatusTooManyRequests},
		},
		{
			ID: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "Show the state of Muster's own parts, and what needs attention", Operators: true,
			Status: http.StatusOK, Answer: &query.StatusAnswer{}, Refusals: []int{http.StatusForbidden},
		},
	}
}
