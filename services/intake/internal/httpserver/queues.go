package httpserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// rights returns the queues by their names with all namespaces of a name, at most rightsKept
// old.
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
		if of, known := s.queues[q.Name]; known { // the rules of a queue are those of its name
			q.Namespaces = slices.Concat(of.Namespaces, q.Namespaces)
		}
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
	seen := s.visible(caller, answer.Queues)
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
	namespace, err := namespaceOf(r)
	if err != nil {
		return err
	}
	q, err := s.queue(ctx, caller, r.PathValue("queue"), namespace)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, q)
	return nil
}

// visible returns the queues that the caller may submit to in one of their namespaces, as it
// sees them; an operator sees all.
func (s *Server) visible(caller string, queues []query.Queue) []query.Queue {
	seen := []query.Queue{}
	for _, q := range queues {
		if s.isOperator(caller) {
			seen = append(seen, q)
		} else if mayAny(map[string]query.Queue{q.Name: q}, caller, q.Name) {
			seen = append(seen, q.ForTenant(caller))
		}
	}
	return seen
}

// queue returns a queue as it is now and as the caller sees it. Queues of one name in several
// namespaces are different ones, so the namespace must then be given.
func (s *Server) queue(ctx context.Context, caller, name, namespace string) (query.Queue, error) {
	answer, err := s.Queries.Queues(ctx)
	if err != nil {
		return query.Queue{}, err
	}
	found := query.Named(s.visible(caller, answer.Queues), name, namespace)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return query.Queue{}, ambiguous(name, found)
	}
	return query.Queue{}, noQueue(name, namespace)
}

func ambiguous(name string, found []query.Queue) error {
	return fail(http.StatusBadRequest, "%.80q is the name of queues in namespaces %.400s; want ?namespace= with one of them",
		name, strings.Join(query.NamespacesOf(found), ", "))
}

func noQueue(name, namespace string) error {
	if namespace != "" {
		return fail(http.StatusNotFound, "there is no queue %.80q in namespace %.80q", name, namespace)
	}
	return fail(http.StatusNotFound, "there is no queue %.80q", name)
}

// namespaceOf reads the namespace that distinguishes queues of one name; empty for none.
func namespaceOf(r *http.Request) (string, error) {
	namespace := r.URL.Query().Get("namespace")
	if why := kube.BadText(namespace); why != "" || len(namespace) > longestName {
		return "", fail(http.StatusBadRequest, "namespace %.80q: want the name of a namespace, of at most %d printable characters", namespace, longestName)
	}
	return namespace, nil
}
