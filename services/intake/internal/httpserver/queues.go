package httpserver

import (
	"context"
	"net/http"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// rights returns the queues, at most rightsKept old.
func (s *Server) rights(ctx context.Context) (map[string]query.Queue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues != nil && time.Since(s.asked) < rightsKept {
		return s.queues, nil
	}
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return nil, err
	}
	s.queues, s.asked = map[string]query.Queue{}, time.Now()
	for _, q := range answer.Queues {
		s.queues[q.Name] = q
	}
	return s.queues, nil
}

// may reports whether the caller may submit to a queue in a namespace, and thus see
// and cancel its workloads there.
func may(queues map[string]query.Queue, caller, queue, namespace string) bool {
	q, known := queues[queue]
	return known && workload.Rules{Submitters: q.Submitters}.MaySubmit(caller, namespace)
}

// mayAny reports whether the caller may submit to a queue in any of its namespaces.
func mayAny(queues map[string]query.Queue, caller, queue string) bool {
	for _, namespace := range queues[queue].Namespaces {
		if may(queues, caller, queue, namespace) {
			return true
		}
	}
	return false
}

func (s *Server) listQueues(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return err
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	seen := []query.Queue{}
	for _, q := range answer.Queues {
		if s.isOperator(caller) {
			seen = append(seen, q)
		} else if mayAny(queues, caller, q.Name) {
			seen = append(seen, q.ForTenant(caller))
		}
	}
	if !s.isOperator(caller) {
		answer = query.QueuesAnswer{}
	}
	answer.Queues = seen
	write(w, http.StatusOK, answer)
	return nil
}

func (s *Server) describeQueue(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	name := r.PathValue("queue")
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	if !s.mayAny(queues, caller, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	q, err := s.queue(ctx, name)
	if err != nil {
		return err
	}
	if !s.isOperator(caller) {
		q = q.ForTenant(caller)
	}
	write(w, http.StatusOK, q)
	return nil
}
