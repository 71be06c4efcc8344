package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/overhttp"
)

// How long an answer serves all pages of a caller.
const (
	freshList   = time.Second
	freshNodes  = 3 * time.Second // the largest answer
	freshReason = 5 * time.Second // an explanation costs the leader a search
)

func (s *Server) status(ctx context.Context, c *caller) (query.StatusAnswer, error) {
	return ask(ctx, s.answers, c.asks("status"), freshList, query.NewClientOver(c.api).Status)
}

func (s *Server) queues(ctx context.Context, c *caller) (query.QueuesAnswer, error) {
	return ask(ctx, s.answers, c.asks("queues"), freshList, query.NewClientOver(c.api).Queues)
}

func (s *Server) nodes(ctx context.Context, c *caller) ([]query.Node, error) {
	answer, err := ask(ctx, s.answers, c.asks("nodes"), freshNodes, query.NewClientOver(c.api).Nodes)
	return answer.Nodes, err
}

// begin asks beside the questions that follow, and returns what waits for the answer.
func begin[Value any](ask func() (Value, error)) func() (Value, error) {
	var value Value
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, err = ask()
	}()
	return func() (Value, error) {
		<-done
		return value, err
	}
}

// selectNodes returns a page of nodes, or one node.
func (s *Server) selectNodes(ctx context.Context, c *caller, r query.NodesRequest) (query.NodesAnswer, error) {
	return ask(ctx, s.answers, c.asks(fmt.Sprintf("nodes %+v", r)), freshNodes, func(ctx context.Context) (query.NodesAnswer, error) {
		return query.NewClientOver(c.api).SelectNodes(ctx, r)
	})
}

// reservations returns those that cover a node and are not over.
func (s *Server) reservations(ctx context.Context, c *caller, n query.Node) ([]quota.Reservation, error) {
	answer, err := ask(ctx, s.answers, c.asks("reservations"), freshList, c.api.Reservations)
	var covering []quota.Reservation
	for _, r := range answer.Reservations {
		if r.In(n.Cluster) && r.Covers(n.Name, n.Labels) && r.Until.After(s.Now()) {
			covering = append(covering, r)
		}
	}
	return covering, err
}

func (s *Server) workloads(ctx context.Context, c *caller, r query.WorkloadsRequest) (httpapi.WorkloadsPage, error) {
	asked, err := json.Marshal(r)
	if err != nil {
		return httpapi.WorkloadsPage{}, fmt.Errorf("write the question about workloads: %w", err)
	}
	what := c.asks("workloads " + string(asked))
	return ask(ctx, s.answers, what, freshList, func(ctx context.Context) (httpapi.WorkloadsPage, error) { return c.api.Page(ctx, r) })
}

func (s *Server) workload(ctx context.Context, c *caller, id workload.ID) (httpapi.Description, error) {
	return ask(ctx, s.answers, c.asks("workload "+string(id)), freshList/2, func(ctx context.Context) (httpapi.Description, error) {
		return c.api.Describe(ctx, id)
	})
}

// manifest returns the manifest of a workload, without its secrets.
func (s *Server) manifest(ctx context.Context, c *caller, id workload.ID) (query.ManifestAnswer, error) {
	return ask(ctx, s.answers, c.asks("manifest "+string(id)), freshReason, func(ctx context.Context) (query.ManifestAnswer, error) {
		return query.NewClientOver(c.api).Manifest(ctx, query.ManifestRequest{ID: id})
	})
}

// explanation returns why a workload waits, or why there is no explanation now; of one that has
// started what its eviction would lose, or nothing.
func (s *Server) explanation(ctx context.Context, c *caller, record workload.Record) (*query.ExplainAnswer, string) {
	if record.Phase != workload.Queued && !record.Phase.Started() {
		return nil, ""
	}
	what := c.asks("explain " + string(record.ID))
	answer, err := ask(ctx, s.answers, what, freshReason, func(ctx context.Context) (query.ExplainAnswer, error) {
		return query.NewClientOver(c.api).Explain(ctx, query.ExplainRequest{ID: record.ID})
	})
	switch status := overhttp.StatusOf(err); {
	case err == nil:
		return &answer, ""
	case record.Phase != workload.Queued:
		return nil, ""
	case status == http.StatusTooManyRequests:
		return nil, "Too much is being asked at the moment; the page asks again."
	case status == http.StatusNotFound, errors.Is(err, context.DeadlineExceeded):
		return nil, "It is not known at the moment; the page asks again."
	default:
		return nil, err.Error()
	}
}

// holding are the phases of workloads that hold places.
func holding() []workload.Phase {
	return []workload.Phase{workload.Admitted, workload.Dispatched, workload.Running, workload.Evicting, workload.Cancelling}
}
