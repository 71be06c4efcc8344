package query

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/spec/workload"
)

// truthPrefix begins the subjects on which the dispatchers of clusters ask.
const truthPrefix = "muster.query.truth."

// TruthSubject is where the dispatcher of a cluster asks about single workloads. NATS lets its
// user ask for its own cluster only, so one cluster learns nothing of the others by it.
func TruthSubject(cluster string) string { return truthPrefix + cluster }

// TruthRequest asks whether a workload has places in a cluster.
type TruthRequest struct {
	ID workload.ID `json:"id"`
}

// TruthAnswer has what a cluster has to know of a workload; nil when there is no such workload.
type TruthAnswer struct {
	Workload *Truth `json:"workload,omitempty"`
}

// Truth is what a cluster has to know of a workload.
type Truth struct {
	ID      workload.ID    `json:"id"`
	Phase   workload.Phase `json:"phase"`
	Attempt int            `json:"attempt"`
	// Holding: it has places in the cluster.
	Holding bool `json:"holding,omitempty"`
	// Request asks for nodes there; nil while none is open.
	Request *OpenRequest `json:"request,omitempty"`
}

// OpenRequest is the open request of a workload for nodes in a cluster.
type OpenRequest struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Class     string `json:"class,omitempty"`
}

// TruthOf returns what a cluster has to know of a workload.
func TruthOf(cluster string, record workload.Record) *Truth {
	known := &Truth{ID: record.ID, Phase: record.Phase, Attempt: record.Attempt, Holding: record.Holding && record.Cluster == cluster}
	if p := record.Provisioning; p != nil && p.Open && p.Cluster == cluster {
		known.Request = &OpenRequest{Namespace: record.Namespace, Name: p.Name, Class: p.Class}
	}
	return known
}

// Record returns it as a record of the workload, of which the rest is not known; nil for none.
func (t *Truth) Record(cluster string) *workload.Record {
	if t == nil {
		return nil
	}
	record := &workload.Record{Workload: workload.Workload{ID: t.ID}, Phase: t.Phase, Attempt: t.Attempt, Holding: t.Holding}
	if t.Holding {
		record.Cluster = cluster
	}
	if t.Request != nil {
		record.Namespace = t.Request.Namespace
		record.Provisioning = &workload.Provisioning{Open: true, Cluster: cluster, Name: t.Request.Name, Class: t.Request.Class}
	}
	return record
}

// Truth asks about a workload, as the dispatcher of a cluster.
func (c *Client) Truth(ctx context.Context, cluster string, id workload.ID) (TruthAnswer, error) {
	return ask[TruthAnswer](ctx, c.transport, TruthSubject(cluster), TruthRequest{ID: id})
}

// truthAtOnce bounds the questions of one cluster that are answered at once; its dispatcher asks
// again while it is busy.
const truthAtOnce = 32

// HandleTruth answers the questions of the dispatchers of all clusters until ctx ends, a few of each
// at once. find returns a page with the workload, or an empty one.
func HandleTruth(ctx context.Context, nc *nats.Conn, find func(context.Context, WorkloadsRequest) (WorkloadsAnswer, error)) error {
	at := endpoint{TruthSubject("*"), truthPrefix, truthAtOnce, smallRequest()}
	return handlePerCluster(ctx, nc, at, func(ctx context.Context, cluster, _ string, r TruthRequest) (TruthAnswer, error) {
		if r.ID == "" {
			return TruthAnswer{}, errors.New("the request names no workload; want its id")
		}
		page, err := find(ctx, WorkloadsRequest{ID: r.ID})
		if err != nil || len(page.Workloads) == 0 {
			return TruthAnswer{}, err
		}
		return TruthAnswer{Workload: TruthOf(cluster, page.Workloads[0])}, nil
	})
}
