package httpserver

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// isOperator reports whether the caller may see and change what is of others.
func (s *Server) isOperator(caller string) bool {
	name, _ := strings.CutPrefix(caller, workload.ByHTTP+"/")
	return slices.Contains(s.Operators, name)
}

// caller returns to a program such as the console who its user is, and whether an operator.
func (s *Server) caller(w http.ResponseWriter, _ *http.Request, caller string) error {
	name, _ := strings.CutPrefix(caller, workload.ByHTTP+"/")
	write(w, http.StatusOK, httpapi.Caller{Name: name, Operator: s.isOperator(caller)})
	return nil
}

// may reports whether the caller may see and cancel the workloads of a queue in a namespace.
func (s *Server) may(queues map[string]query.Queue, caller, queue, namespace string) bool {
	return s.isOperator(caller) || may(queues, caller, queue, namespace)
}

// mayAny reports whether the caller may see a queue.
func (s *Server) mayAny(queues map[string]query.Queue, caller, queue string) bool {
	_, known := queues[queue]
	return known && s.isOperator(caller) || mayAny(queues, caller, queue)
}

// forOperators refuses other callers.
func (s *Server) forOperators(handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, caller string) error {
		if !s.isOperator(caller) {
			return fail(http.StatusForbidden, "%s is no operator: only a caller that intake's --http-operators names may ask for this", caller)
		}
		return handle(w, r, caller)
	}
}

// listDeadLetters lists messages that could not be processed. The content of a submission may
// have secrets, and is left out, also where the reason quotes it.
func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	dead, older, err := s.Dead.LastDeadLetters(ctx, httpapi.MostDeadLetters, func(d *bus.DeadLetter) { d.Message = "" })
	if err != nil {
		return err
	}
	answer := httpapi.DeadLetters{DeadLetters: make([]httpapi.DeadLetter, len(dead)), Older: older}
	for i, d := range dead {
		answer.DeadLetters[i] = httpapi.DeadLetter{Subject: d.Subject, Sequence: d.Sequence, At: d.At, Stored: d.Stored, Reason: withoutQuotes(d.Reason), Bytes: d.Size}
	}
	write(w, http.StatusOK, answer)
	return nil
}

// withoutQuotes leaves out what a text has in double quotes or backquotes: what an error quotes
// may be a value of the message. A quote without an end goes to the end of the text.
func withoutQuotes(text string) string {
	var out strings.Builder
	for {
		open := strings.IndexAny(text, "\"`")
		if open < 0 {
			out.WriteString(text)
			return out.String()
		}
		quote := text[open]
		out.WriteString(text[:open+1])
		out.WriteString("...")
		rest := open + 1
		for rest < len(text) && text[rest] != quote {
			if text[rest] == '\\' && quote == '"' {
				rest++ // what follows is part of the quote
			}
			rest++
		}
		if rest >= len(text) {
			return out.String()
		}
		out.WriteByte(quote)
		text = text[rest+1:]
	}
}

func (s *Server) demand(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := s.Queries.Demand(ctx)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}

func (s *Server) status(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := s.Queries.Status(ctx)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}

func (s *Server) listClusters(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := s.Queries.Status(ctx)
	if err != nil {
		return err
	}
	clusters := httpapi.Clusters{Clusters: []query.ClusterStatus{}}
	clusters.Clusters = append(clusters.Clusters, answer.Clusters...)
	write(w, http.StatusOK, clusters)
	return nil
}

// move has a workload of the caller's wait in another queue that the caller may submit to.
func (s *Server) move(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	why, err := whyOf(r)
	if err != nil {
		return err
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	to := r.URL.Query().Get("queue")
	if _, known := queues[to]; !known || !s.may(queues, caller, to, record.Namespace) {
		return fail(http.StatusNotFound, "there is no queue %.80q in namespace %s", to, record.Namespace)
	}
	if record.Phase != workload.Queued {
		return fail(http.StatusConflict, "workload %s is %s: only a waiting workload can be moved", record.ID, record.Phase)
	}
	move := &event.WorkloadMove{Workload: record.ID, Queue: to, By: caller, Why: why, Submitter: caller}
	if s.isOperator(caller) {
		move.Submitter = ""
	}
	if err := s.publishOf(ctx, record, move); err != nil {
		return err
	}
	write(w, http.StatusAccepted, httpapi.Moving{Workload: record.ID, Queue: to})
	return nil
}

// release frees the places of a workload by force. One that holds none stays as it is.
func (s *Server) release(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	record, err := s.record(ctx, caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	why, err := whyOf(r)
	if err != nil {
		return err
	}
	if strings.TrimSpace(why) == "" {
		return fail(http.StatusBadRequest, "why is missing: want the reason for freeing the places by force")
	}
	if record.Holding {
		if err := s.publishOf(ctx, record, &event.WorkloadRelease{Workload: record.ID, By: caller, Why: why}); err != nil {
			return err
		}
	}
	write(w, http.StatusAccepted, httpapi.Releasing{Workload: record.ID})
	return nil
}

func (s *Server) listApplied(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	answer, err := s.Queries.Applied(ctx)
	if err != nil {
		return err
	}
	if answer.Objects == nil {
		answer.Objects = []query.Applied{}
	}
	write(w, http.StatusOK, answer)
	return nil
}

// whyOf reads the reason of a change.
func whyOf(r *http.Request) (string, error) {
	why := r.URL.Query().Get("why")
	if bad := kube.BadText(why); bad != "" || len(why) > longestWhy {
		return "", fail(http.StatusBadRequest, "why %.80q: want at most %d printable characters", why, longestWhy)
	}
	return why, nil
}
