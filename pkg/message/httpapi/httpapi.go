// Package httpapi describes the requests and answers of intake's HTTP API: the
// operations as data, and the types that are not those of messages (package event) or
// questions (package query). The OpenAPI document is made of it.
//
// It is not the server, which is in intake.
package httpapi

import (
	"muster.dev/muster/pkg/decide/quota"
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
	// Estimates are those that were made while it waited, oldest first.
	Estimates []query.PastEstimate `json:"estimates,omitempty"`
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
	// Unchanged: it is as asked for already, so no change follows.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Caller is as whom a request is answered.
type Caller struct {
	// Name is that of the token or certificate; in queues the caller is http/NAME.
	Name string `json:"name"`
	// Operator: the caller sees and changes what is of others, too.
	Operator bool `json:"operator,omitempty"`
}

// Clusters are all clusters of Muster.
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
