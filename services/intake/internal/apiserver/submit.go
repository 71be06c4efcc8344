package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	id := r.Header.Get(httpapi.IdempotencyKey)
	if id == "" {
		id = event.NewID()
	}
	submitted = httpapi.Submission{Queue: queue, Source: caller, ID: id}
	headers := map[string][]string{
		"ce-specversion": {event.SpecVersion}, "ce-type": {event.SubmitType}, "ce-source": {submitted.Source}, "ce-id": {submitted.ID},
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
	for len(following.C) > 0 { // events of an earlier submission under the same id
		<-following.C
	}
	// A unique id, so that NATS does not drop a repetition: it needs an answer, too.
	result.Event.ID += "/" + event.NewID()
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
			_, payload, _ := delivery.Event()
			switch e := payload.(type) {
			case *event.WorkloadRejected:
				w.Header().Del("Location")
				return refusal(e.Reason)
			case *event.WorkloadChanged:
				record := e.Record
				submitted.Record = &record
				write(w, http.StatusCreated, submitted)
				return nil
			}
		}
	}
}

// follow streams a workload as server-sent events: its present record, then every
// change, until the workload has ended and holds no resources, or the caller
// disconnects.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, caller string) error {
	record, err := s.record(r.Context(), caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	following, err := s.Bus.Follow(ctx, bus.EventsStream, event.EventsSubject(record.Queue, record.ID))
	if err != nil {
		return err
	}
	return s.stream(w, r, following.C, func(event.Payload) bool { return true }, func(p event.Payload) bool {
		changed, is := p.(*event.WorkloadChanged)
		return is && changed.Phase.Final() && !changed.Holding
	}, &record)
}

// followQueue streams the events of a queue that the caller may see.
func (s *Server) followQueue(w http.ResponseWriter, r *http.Request, caller string) error {
	name := r.PathValue("queue")
	queues, err := s.rights(r.Context())
	if err != nil {
		return err
	}
	if !workload.ValidName(name) || !mayAny(queues, caller, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	following, err := s.Bus.Follow(ctx, bus.EventsStream, event.EventsSubject(name, "*"))
	if err != nil {
		return err
	}
	return s.stream(w, r, following.C, func(p event.Payload) bool {
		changed, is := p.(*event.WorkloadChanged)
		return is && may(queues, caller, name, changed.Namespace)
	}, func(event.Payload) bool { return false }, nil)
}

// heartbeat keeps proxies from closing a quiet stream.
const heartbeat = 15 * time.Second

// stream writes the shown events up to the last one. known, unless nil, is written
// first: the bus may have no event of the workload any more.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, deliveries <-chan bus.Delivery, shown, last func(event.Payload) bool, known *workload.Record) error {
	flush := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	begin := func() error { return flush.SetWriteDeadline(time.Now().Add(s.Limits.Write)) }
	if err := begin(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	if known != nil {
		if err := writeEvent(w, "", "dev.muster.workload.changed.v1", known); err != nil {
			return nil
		}
	}
	if known != nil && known.Phase.Final() && !known.Holding {
		return nil
	}
	var duplicates bus.Duplicates
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		if err := flush.Flush(); err != nil {
			return nil // the caller has disconnected, or does not read
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-alive.C:
			if begin() != nil {
				return nil
			}
			_, _ = io.WriteString(w, ": alive\n\n")
		case delivery, open := <-deliveries:
			if !open {
				return nil
			}
			if duplicates.Seen(delivery) {
				continue
			}
			envelope, payload, err := delivery.Event()
			if err != nil || !shown(payload) {
				continue
			}
			if begin() != nil || writeEvent(w, envelope.ID, envelope.Type, payload) != nil {
				return nil
			}
			if last(payload) {
				_ = flush.Flush()
				return nil
			}
		}
	}
}

// writeEvent writes one server-sent event.
func writeEvent(w io.Writer, id, kind string, payload any) error {
	data, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	var text strings.Builder
	if id != "" {
		fmt.Fprintf(&text, "id: %s\n", id)
	}
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", kind, data)
	_, err = io.WriteString(w, text.String())
	return err
}
