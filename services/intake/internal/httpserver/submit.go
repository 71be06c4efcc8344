package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

// source is the CloudEvents source of the API's messages.
const source = "muster/intake/http"

// submit takes a manifest and answers once queue-manager has stored or refused the
// workload. If that takes too long, the answer is 202 Accepted.
func (s *Server) submit(w http.ResponseWriter, r *http.Request, caller string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	submitted, result, err := s.readSubmission(ctx, w, r, caller)
	if err != nil {
		return err
	}
	return s.store(ctx, w, submitted, result)
}

// readSubmission reads the submission in a request.
func (s *Server) readSubmission(ctx context.Context, w http.ResponseWriter, r *http.Request, caller string) (submitted httpapi.Submission, result submission.Result, err error) {
	queue := r.PathValue("queue")
	if !workload.ValidName(queue) {
		return submitted, result, fail(http.StatusBadRequest, "queue %.80q: want a name of at most 63 lower-case letters, digits and dashes", queue)
	}
	manifest, err := io.ReadAll(http.MaxBytesReader(w, r.Body, event.MaxSubmission))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return submitted, result, fail(http.StatusRequestEntityTooLarge, "the manifest has more than %d bytes: move files and scripts to a ConfigMap or an image", event.MaxSubmission)
	case err != nil:
		return submitted, result, fail(http.StatusBadRequest, "read the manifest: %v", err)
	}
	if len(manifest) == 0 {
		return submitted, result, fail(http.StatusUnprocessableEntity, "the body is empty; want a manifest, in YAML or JSON")
	}
	if text := r.URL.Query().Get("priority"); text != "" {
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			return submitted, result, fail(http.StatusUnprocessableEntity, "parameter \"priority\" is %.80q; want a whole number from %d to %d", text, math.MinInt32, math.MaxInt32)
		}
	}
	id := r.Header.Get(httpapi.IdempotencyKey)
	if id == "" {
		id = event.NewID()
	}
	submitted = httpapi.Submission{Queue: queue, Source: caller, ID: id}
	headers := map[string][]string{
		"ce-specversion": {event.SpecVersion}, "ce-type": {event.SubmitType}, "ce-source": {submitted.Source}, "ce-id": {submitted.ID},
		// Of this request alone: a repetition needs an answer of its own.
		"Nats-Msg-Id": {event.NewID()},
	}
	for attribute, parameter := range map[string]string{"ce-priority": "priority", "ce-priorityclass": "priorityClass"} {
		if value := r.URL.Query().Get(parameter); value != "" {
			headers[attribute] = []string{value}
		}
	}
	message := submission.Message{Subject: event.SubmitSubject(queue), Submitter: caller, Headers: headers, Data: manifest, Stored: time.Now()}
	type answer struct {
		submission.Result
		err error
	}
	read, err := budget.Do(ctx, s.Budget, len(manifest), nil, func() answer {
		result, err := submission.Read(s.Operator, message)
		return answer{result, err}
	})
	switch {
	case errors.Is(err, budget.ErrSpent):
		return submitted, result, fail(http.StatusUnprocessableEntity, "read the manifest: %v", err)
	case err != nil:
		return submitted, result, fail(http.StatusServiceUnavailable, "too many manifests are being read; submit the same again later")
	case read.err != nil:
		return submitted, result, read.err
	}
	if reason := read.Rejection; reason != nil {
		return submitted, result, refusal(*reason)
	}
	submitted.Workload = read.Workload
	return submitted, read.Result, nil
}

// refusal is the failure for a submission that was refused.
func refusal(reason workload.Reason) error {
	status := http.StatusUnprocessableEntity
	switch reason.Kind {
	case workload.ReasonForbidden:
		status = http.StatusForbidden
	case workload.ReasonQueue:
		status = http.StatusNotFound
	case workload.ReasonDuplicate:
		status = http.StatusConflict
	case workload.ReasonFull:
		status = http.StatusTooManyRequests
	}
	return &failure{status, httpapi.Problem{Error: reason.Message, Reason: &reason}}
}

// store publishes the submission and waits for queue-manager's answer.
func (s *Server) store(ctx context.Context, w http.ResponseWriter, submitted httpapi.Submission, result submission.Result) error {
	following, err := s.Bus.Follow(ctx, bus.EventsStream, event.EventsSubject(submitted.Queue, submitted.Workload))
	if err != nil {
		return err
	}
	select {
	case <-following.CaughtUp:
	case <-ctx.Done():
		return ctx.Err()
	}
	wanted := awaited{digest: result.Digest, messageID: result.MessageID}
	for len(following.C) > 0 { // events of an earlier submission under the same id
		wanted.after = max(wanted.after, (<-following.C).Sequence)
	}
	result.Event.ID += "/" + result.MessageID // unique, so that NATS does not drop a repetition
	if err := s.publish(ctx, result.Subject, result.Event); err != nil {
		return fmt.Errorf("publish the submission: %w", err)
	}
	w.Header().Set("Location", "/v1/workloads/"+string(submitted.Workload))
	waiting, done := context.WithTimeout(ctx, storedTimeout)
	defer done()
	for {
		select {
		case <-waiting.Done():
			write(w, http.StatusAccepted, submitted)
			return nil
		case delivery, open := <-following.C:
			if !open {
				write(w, http.StatusAccepted, submitted)
				return nil
			}
			record, reason := wanted.answer(delivery)
			switch {
			case reason != nil:
				w.Header().Del("Location")
				return refusal(*reason)
			case record != nil:
				submitted.Record = record
				write(w, http.StatusCreated, submitted)
				return nil
			}
		}
	}
}

// awaited is the answer to a submission. Other events may come before it: of an earlier
// submission under the same id and, after a reconnection, those that came before.
type awaited struct {
	after             uint64 // the sequence of the last event before the submission
	digest, messageID string
}

// answer returns what an event answers to the submission: its workload, or why it was refused;
// nothing when it is no answer.
func (a awaited) answer(d bus.Delivery) (*workload.Record, *workload.Reason) {
	if d.Sequence <= a.after {
		return nil, nil
	}
	_, payload, _ := d.Event()
	switch e := payload.(type) {
	case *event.WorkloadRejected:
		if e.MessageID == a.messageID {
			return nil, &e.Reason
		}
	case *event.WorkloadChanged:
		if e.Digest == a.digest { // what has other content is not this one, and a rejection follows
			return &e.Record, nil
		}
	}
	return nil, nil
}
