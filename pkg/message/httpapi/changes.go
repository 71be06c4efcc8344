package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

// requestOperations change a workload that was submitted.
func requestOperations() []Operation {
	return []Operation{
		{
			ID: "move", Method: http.MethodPost, Path: "/v1/workloads/{id}/move", Summary: "Move a waiting workload to another queue; its next event shows whether it was moved",
			Parameters: []Parameter{{Name: "queue", What: "The queue to wait in from now on."}, {Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Moving{}, Refusals: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "holdWorkload", Method: http.MethodPut, Path: "/v1/workloads/{id}/hold", Summary: "Keep a waiting workload from admission until it is resumed; its next event shows whether it is held",
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
			ID: "checkpoint", Method: http.MethodPut, Path: "/v1/workloads/{id}/checkpoint", Summary: "Report that a running workload has saved its work, so that its eviction loses less",
			Parameters: []Parameter{{Name: "at", What: "When it did so, as RFC 3339; the present if it is missing or still to come."}},
			Status:     http.StatusAccepted, Answer: &Changing{}, Refusals: []int{http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "setPriority", Method: http.MethodPut, Path: "/v1/workloads/{id}/priority", Summary: "Set the priority of a waiting or running workload", Operators: true,
			Parameters: []Parameter{{Name: "value", What: "The priority; a higher number comes first.", Number: true}, {Name: "why", What: "A reason to store with it."}},
			Status:     http.StatusAccepted, Answer: &Changing{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
	}
}

// operatorOperations are for operators alone: they show all queues, or change what others
// wait for.
func operatorOperations() []Operation {
	return slices.Concat(stopOperations(), clusterOperations(), reservationOperations(), overviewOperations())
}

// stopOperations free the places of a workload, and hold and resume queues.
func stopOperations() []Operation {
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
	}
}

// clusterOperations let clusters join and leave, and stop admission there.
func clusterOperations() []Operation {
	return []Operation{
		{
			ID: "joinCluster", Method: http.MethodPut, Path: "/v1/clusters/{cluster}", Summary: "Describe a cluster that joins, or describe it in another way", Operators: true,
			Parameters: []Parameter{
				{Name: "label", What: "Labels by which workloads select it, such as tier=spot, separated by commas."},
				{Name: "cost", What: "What a unit of resources costs in an hour, such as nvidia.com/gpu=2.5, separated by commas."},
				{Name: "queue", What: "The ClusterQueues whose gangs it takes, separated by commas. Without any it takes all."},
				{Name: "flavor", What: "The ResourceFlavors that it offers, separated by commas. Without any it offers all."},
			},
			Status: http.StatusOK, Answer: &query.ClusterStatus{}, Refusals: []int{http.StatusForbidden},
		},
		{
			ID: "leaveCluster", Method: http.MethodDelete, Path: "/v1/clusters/{cluster}", Summary: "Forget a cluster in which no workload holds places", Operators: true,
			Parameters: []Parameter{
				{Name: "why", What: "A reason, which those who wait see."},
				{Name: "force", What: "With true also one where workloads hold places: they start again in other clusters, and their pods may still run."},
			},
			Status: http.StatusOK, Answer: &query.ClusterStatus{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "cordonCluster", Method: http.MethodPut, Path: "/v1/clusters/{cluster}/cordon", Summary: "Admit nothing in a cluster until it is uncordoned", Operators: true,
			Parameters: []Parameter{
				{Name: "why", What: "A reason, which those who wait see."},
				{Name: "drain", What: "With true the workloads of the cluster are evicted, too, and start again in others."},
			},
			Status: http.StatusOK, Answer: &query.ClusterStatus{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
		{
			ID: "uncordonCluster", Method: http.MethodDelete, Path: "/v1/clusters/{cluster}/cordon", Summary: "Admit workloads in a cordoned or drained cluster again", Operators: true,
			Status: http.StatusOK, Answer: &query.ClusterStatus{}, Refusals: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
	}
}

// reservationOperations reserve nodes for a time.
func reservationOperations() []Operation {
	return []Operation{
		{
			ID: "reserve", Method: http.MethodPut, Path: "/v1/reservations/{reservation}", Summary: "Reserve nodes for a time, or replace the reservation of that name", Operators: true,
			Parameters: []Parameter{
				{Name: "from", What: "When it begins, such as 2026-12-01T08:00:00Z."}, {Name: "until", What: "When it ends."},
				{Name: "node", What: "The names of the nodes, separated by commas."}, {Name: "label", What: "Instead, labels that the nodes have, such as pool=a100, separated by commas."},
				{Name: "cluster", What: "Only nodes of this cluster."}, {Name: "clusterQueue", What: "The ClusterQueue that the nodes are for. Without it, user and workload they are for maintenance."},
				{Name: "user", What: "The submitter for which the nodes are reserved."}, {Name: "workload", What: "The workload that the nodes are for: an id, or namespace/name."},
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
	}
}

// overviewOperations show what spans all queues: nodes, demand, clusters, objects, decisions,
// messages, and the state of Muster itself.
func overviewOperations() []Operation {
	return []Operation{
		{
			ID: "listNodes", Method: http.MethodGet, Path: "/v1/nodes", Summary: "List nodes by cluster and name, and what is free on them", Operators: true,
			Parameters: []Parameter{
				{Name: "cluster", What: "Only nodes of this cluster."}, {Name: "name", What: "Only nodes of this name."},
				{Name: "prefix", What: "Only nodes whose names begin so."}, {Name: "state", What: "Only nodes in this state: " + strings.Join(query.NodeStates(), ", ") + "."},
				{Name: "from", What: "The node with which to begin, as CLUSTER/NODE: the next of the page before."},
				{Name: "limit", What: "The most nodes, up to 500; without it all.", Number: true},
				{Name: "holders", What: "With true also who holds the nodes, and until when."},
			},
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
			ID: "listDeadLetters", Method: http.MethodGet, Path: "/v1/dead-letters", Summary: "List messages that could not be processed, with the reason and without their content", Operators: true,
			Status: http.StatusOK, Answer: &DeadLetters{}, Refusals: []int{http.StatusForbidden, http.StatusTooManyRequests},
		},
		{
			ID: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "Show the state of Muster's own parts, and what needs attention", Operators: true,
			Status: http.StatusOK, Answer: &query.StatusAnswer{}, Refusals: []int{http.StatusForbidden},
		},
	}
}
