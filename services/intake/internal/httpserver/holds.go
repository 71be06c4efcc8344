package httpserver

import (
	"context"
	"net/http"
	"slices"

	"muster.dev/muster/pkg/message/query"
)

// holdOf reads what a request holds or resumes.
func holdOf(r *http.Request, caller string) (query.HoldRequest, error) {
	why, err := whyOf(r)
	if err != nil {
		return query.HoldRequest{}, err
	}
	namespace, err := namespaceOf(r)
	change := query.HoldRequest{Queue: r.PathValue("queue"), Namespace: namespace, By: caller, Why: why}
	if r.Method == http.MethodDelete {
		change.Resume, change.Why = true, ""
	}
	return change, err
}

// changeQueueHold holds a queue that is not held, or resumes it, and answers with the queue as
// it is then.
func (s *Server) changeQueueHold(w http.ResponseWriter, r *http.Request, caller string) error {
	change, err := holdOf(r, caller)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	all := r.URL.Query().Get("allNamespaces") == "true"
	q, err := s.heldQueue(ctx, change, all)
	if err != nil {
		return err
	}
	if isHeld := q.Hold != nil && (q.Hold.Namespace == "" || q.Hold.Namespace == change.Namespace); isHeld == change.Resume {
		if _, err := s.Queries.Hold(ctx, change); err != nil {
			return err
		}
		if q, err = s.heldQueue(ctx, change, all); err != nil {
			return err
		}
	}
	write(w, http.StatusOK, q)
	return nil
}

// heldQueue returns the queue of a change. Where several have its name, the namespace must be
// given, or all of them be meant.
func (s *Server) heldQueue(ctx context.Context, change query.HoldRequest, all bool) (query.Queue, error) {
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return query.Queue{}, err
	}
	found := query.Named(answer.Queues, change.Queue, change.Namespace)
	switch {
	case len(found) == 0:
		return query.Queue{}, noQueue(change.Queue, change.Namespace)
	case len(found) > 1 && !all:
		return query.Queue{}, ambiguous(change.Queue, found)
	}
	return found[0], nil
}

// changeClusterQueueHold is changeQueueHold for a ClusterQueue.
func (s *Server) changeClusterQueueHold(w http.ResponseWriter, r *http.Request, caller string) error {
	change, err := holdOf(r, caller)
	if err != nil {
		return err
	}
	change.Namespace, change.ClusterQueue = "", r.PathValue("clusterQueue")
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	q, err := s.clusterQueue(ctx, change.ClusterQueue)
	if err != nil {
		return err
	}
	if (q.Hold != nil) == change.Resume {
		if _, err := s.Queries.Hold(ctx, change); err != nil {
			return err
		}
		if q, err = s.clusterQueue(ctx, change.ClusterQueue); err != nil {
			return err
		}
	}
	write(w, http.StatusOK, q)
	return nil
}

func (s *Server) clusterQueue(ctx context.Context, name string) (query.ClusterQueue, error) {
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return query.ClusterQueue{}, err
	}
	i := slices.IndexFunc(answer.ClusterQueues, func(q query.ClusterQueue) bool { return q.Name == name })
	if i < 0 {
		return query.ClusterQueue{}, fail(http.StatusNotFound, "there is no ClusterQueue %.80q", name)
	}
	return answer.ClusterQueues[i], nil
}
