package query

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/message/bounds"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// homePrefix begins the subjects on which the intakes of further clusters ask.
const homePrefix = "muster.home."

// homeAtOnce bounds the requests of one cluster that are answered at once.
const homeAtOnce = 16

// homeBounds are of a request with a submission; package event bounds what is in it. A text in it
// that Postgres does not store would end a term.
func homeBounds() bounds.JSON {
	return bounds.JSON{Bytes: 2 * event.MaxSubmission, Depth: 110, Values: 60_000, Storable: true}
}

// HomeSubject is where the intake of a further cluster submits, cancels and reads the objects of
// a queue that users made there with kubectl. NATS lets its user ask for its own cluster and its
// queues only.
func HomeSubject(cluster, queue string) string { return homePrefix + cluster + "." + queue }

// HomeRequest is about objects of the cluster. It has one of Message, IDs, Placed and Waiting.
type HomeRequest struct {
	// Message is a CloudEvent (WorkloadSubmitted or WorkloadCancel) about the workload of an
	// object, and UID that of the object, from which the id of the workload is made. To cancel the
	// workload of an object that moved and is gone it needs no UID.
	Message json.RawMessage `json:"message,omitempty"`
	UID     string          `json:"uid,omitempty"`
	// IDs asks for workloads, of whatever queue, MaxPage at most.
	IDs []workload.ID `json:"ids,omitempty"`
	// Statuses, with IDs, asks for the statuses of the objects in the place of the cluster's own,
	// MostHomeStatuses at most, instead of for the workloads.
	Statuses bool `json:"statuses,omitempty"`
	// Placed asks for a page of the workloads with places, of whatever queue, whose objects move,
	// behind After.
	Placed bool `json:"placed,omitempty"`
	// Waiting asks for a page of the workloads that wait in the queue, behind After.
	Waiting bool  `json:"waiting,omitempty"`
	After   int64 `json:"after,omitempty"`
}

// HomeAnswer is the answer to a HomeRequest.
type HomeAnswer struct {
	// Sequence is under which NATS has stored the message.
	Sequence uint64 `json:"sequence,omitempty"`
	// Workloads are those that were asked for, as far as their objects are in the cluster.
	Workloads []workload.Record `json:"workloads,omitempty"`
	// Next is the After of the following page; zero on the last one.
	Next int64 `json:"next,omitempty"`
	// Statuses are those that were asked for, as far as a dispatcher has reported one.
	Statuses []HomeStatus `json:"statuses,omitempty"`
}

// MostHomeStatuses bounds how many statuses are asked for at once: an answer has 512 KiB at most.
const MostHomeStatuses = 24

// HomeStatus is what KubeRay's status was of the object in the place of a user's.
type HomeStatus struct {
	Workload workload.ID `json:"workload"`
	Cluster  string      `json:"cluster"`
	Attempt  int         `json:"attempt"`
	Name     string      `json:"name"`
	// Status is of the RayJob or RayCluster, as the API server there has it; nil before KubeRay has
	// written one.
	Status json.RawMessage `json:"status,omitempty"`
}

// Home asks as the intake of a cluster.
func (c *Client) Home(ctx context.Context, cluster, queue string, request HomeRequest) (HomeAnswer, error) {
	return ask[HomeAnswer](ctx, c.transport, HomeSubject(cluster, queue), request)
}

// HandleHome answers the requests of the intakes of all further clusters until ctx ends, a few of
// each cluster at once.
func HandleHome(ctx context.Context, nc *nats.Conn, answer func(ctx context.Context, cluster, queue string, r HomeRequest) (HomeAnswer, error)) error {
	return handlePerCluster(ctx, nc, endpoint{HomeSubject("*", "*"), homePrefix, homeAtOnce, homeBounds()}, answer)
}
