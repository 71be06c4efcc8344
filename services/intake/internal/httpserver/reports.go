package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/query"
)

// activity reports what happened over time to the workloads that the caller may see.
func (s *Server) activity(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	request, err := activityRequest(r, time.Now())
	if err != nil {
		return err
	}
	if !s.isOperator(caller) {
		queues, err := s.rights(ctx)
		if err != nil {
			return err
		}
		if request.Within = placesOf(queues, caller, request.Queue); len(request.Within) == 0 {
			write(w, http.StatusOK, query.ActivityAnswer{Since: request.Since, StepSeconds: request.StepSeconds, Steps: []query.ActivityStep{}})
			return nil
		}
	}
	answer, err := s.Queries.Activity(ctx, request)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}

func activityRequest(r *http.Request, now time.Time) (query.ActivityRequest, error) {
	values := r.URL.Query()
	request := query.ActivityRequest{Queue: values.Get("queue")}
	var err error
	if request.Since, err = time.Parse(time.RFC3339, values.Get("since")); err != nil {
		return request, fail(http.StatusBadRequest, "since %.80q: want a time such as 2026-01-02T15:04:05Z", values.Get("since"))
	}
	if request.StepSeconds, err = strconv.Atoi(values.Get("step")); err != nil {
		return request, fail(http.StatusBadRequest, "step %.80q: want a whole number of seconds", values.Get("step"))
	}
	if why := kube.BadText(request.Queue); why != "" || len(request.Queue) > longestName {
		return request, fail(http.StatusBadRequest, "queue %.80q: want the name of an object, of at most %d printable characters", request.Queue, longestName)
	}
	if err := request.Check(now); err != nil {
		return request, fail(http.StatusBadRequest, "%v", err)
	}
	return request, nil
}

// longestWhatIf bounds the body of a what-if, and mostWhatIfParts its JSON objects: decoded,
// each takes many times the bytes of an empty one.
const (
	longestWhatIf   = 2 << 20
	mostWhatIfParts = 20_000
)

// whatIf tries a change on a copy of the live state.
func (s *Server) whatIf(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	request, err := whatIfRequest(w, r)
	if err != nil {
		return err
	}
	request.For = caller
	if !s.isOperator(caller) {
		if err := s.ofTenant(ctx, caller, &request); err != nil {
			return err
		}
	}
	answer, err := s.Queries.WhatIf(ctx, request)
	var refused *query.ProblemError
	if errors.As(err, &refused) && !refused.Busy {
		return fail(http.StatusUnprocessableEntity, "%s", refused.Message)
	}
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}

// whatIfRequest reads the change from the body.
func whatIfRequest(w http.ResponseWriter, r *http.Request) (request query.WhatIfRequest, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestWhatIf))
	if err != nil {
		return request, fail(http.StatusUnprocessableEntity, "the body cannot be read, of which at most %d bytes are: %.500q", longestWhatIf, err.Error())
	}
	if parts := bytes.Count(body, []byte("{")); parts > mostWhatIfParts {
		return request, fail(http.StatusUnprocessableEntity, "the body has %d JSON objects; want at most %d", parts, mostWhatIfParts)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return request, fail(http.StatusUnprocessableEntity, "the body is not the JSON of a change of at most %d bytes: %.500q", longestWhatIf, err.Error())
	}
	return request, nil
}

// ofTenant refuses changes that a tenant may not try, and limits the answer to what it may see.
func (s *Server) ofTenant(ctx context.Context, caller string, request *query.WhatIfRequest) error {
	if len(request.AddNodes)+len(request.Drain)+len(request.DrainAll) > 0 || request.QueuesFile != "" {
		return fail(http.StatusForbidden, "only an operator may try other nodes and other queues; want workloads of yours, or submissions")
	}
	if len(request.Workloads) > query.MaxWhatIfChanges || len(request.Submit) > query.MaxWhatIfChanges {
		return fail(http.StatusUnprocessableEntity, "%d workloads and %d submissions: want at most %d of each", len(request.Workloads), len(request.Submit), query.MaxWhatIfChanges)
	}
	queues, err := s.rights(ctx)
	if err != nil {
		return err
	}
	for _, change := range request.Workloads {
		record, err := s.record(ctx, caller, change.ID)
		if err != nil {
			return err
		}
		if change.Queue != "" && !may(queues, caller, change.Queue, record.Namespace) {
			return noQueue(change.Queue, record.Namespace)
		}
	}
	for i := range request.Submit {
		of := &request.Submit[i]
		if of.Namespace == "" && !mayAny(queues, caller, of.Queue) || of.Namespace != "" && !may(queues, caller, of.Queue, of.Namespace) {
			return noQueue(of.Queue, of.Namespace)
		}
		of.Submitter = caller
	}
	if request.Within = placesOf(queues, caller, ""); len(request.Within) == 0 {
		return fail(http.StatusForbidden, "you may submit to no queue")
	}
	return nil
}

// listDecisions lists what was decided, for operators.
func (s *Server) listDecisions(w http.ResponseWriter, r *http.Request, _ string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	values, request := r.URL.Query(), query.DecisionsRequest{}
	var err error
	if text := values.Get("until"); text != "" {
		if request.Until, err = time.Parse(time.RFC3339, text); err != nil {
			return fail(http.StatusBadRequest, "until %.80q: want a time such as 2026-01-02T15:04:05Z", text)
		}
	}
	if text := values.Get("before"); text != "" {
		key, err := query.ParseDecisionKey(text)
		if err != nil {
			return fail(http.StatusBadRequest, "before: %v", err)
		}
		request.Before = &key
	}
	if text := values.Get("limit"); text != "" {
		if request.Limit, err = strconv.Atoi(text); err != nil || request.Limit < 1 || request.Limit > query.MaxDecisions {
			return fail(http.StatusBadRequest, "limit %.80q: want a whole number from 1 to %d", text, query.MaxDecisions)
		}
	}
	answer, err := s.Queries.Decisions(ctx, request)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, answer)
	return nil
}
