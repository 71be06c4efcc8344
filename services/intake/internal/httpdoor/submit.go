package httpdoor

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
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/httpapi"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

// source is the CloudEvents source of what the door says.
const source = "muster/intake/http"

// submit takes a manifest. The answer comes when queue-manager has stored the
// workload or has refused it; when that takes too long it says so.
func (d *Door) submit(w http.ResponseWriter, r *http.Request, who string) error {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	queue := r.PathValue("queue")
	if !workload.ValidName(queue) {
		return fail(http.StatusBadRequest, "queue %q: want a name of at most 63 lower-case letters, digits and dashes", queue)
	}
	manifest, err := io.ReadAll(http.MaxBytesReader(w, r.Body, event.MaxSubmission))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return fail(http.StatusRequestEntityTooLarge, "the manifest has more than %d bytes: move files and scripts to a ConfigMap or an image", event.MaxSubmission)
	case err != nil:
		return fail(http.StatusBadRequest, "read the manifest: %v", err)
	}
	id := r.Header.Get(httpapi.IdempotencyKey)
	if id == "" {
		id = event.NewID()
	}
	said := httpapi.Submission{Queue: queue, Source: who, ID: id}
	headers := map[string][]string{
		"ce-specversion": {event.SpecVersion}, "ce-type": {event.SubmitType}, "ce-source": {said.Source}, "ce-id": {said.ID},
	}
	for attribute, parameter := range map[string]string{"ce-priority": "priority", "ce-priorityclass": "priorityClass"} {
		if value := r.URL.Query().Get(parameter); value != "" {
			headers[attribute] = []string{value}
		}
	}
	message := submission.Message{Subject: bus.SubmitSubject(queue), Submitter: who, Headers: headers, Data: manifest, Stored: time.Now()}
	type answer struct {
		submission.Result
		err error
	}
	read, err := budget.Do(ctx, d.Budget, len(manifest), nil, func() answer {
		result, err := submission.Read(d.Operator, message)
		return answer{result, err}
	})
	switch {
	case errors.Is(err, budget.ErrSpent):
		return fail(http.StatusUnprocessableEntity, "the manifest is not taken: %v", err)
	case err != nil:
		return fail(http.StatusServiceUnavailable, "too many manifests are read at this moment: try again")
	case read.err != nil:
		return read.err
	}
	result := read.Result
	if result.Rejection != nil {
		return refusal(*result.Rejection)
	}
	said.Workload = result.Workload
	return d.store(ctx, w, said, result)
}

// refusal tells why Muster does not take a submission.
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

// store publishes what was read and waits for queue-manager's word.
func (d *Door) store(ctx context.Context, w http.ResponseWriter, said httpapi.Submission, result submission.Result) error {
	following, err := d.Bus.Follow(ctx, bus.EventsStream, bus.EventsSubject(said.Queue, said.Workload))
	if err != nil {
		return err
	}
	select {
	case <-following.CaughtUp:
	case <-ctx.Done():
		return ctx.Err()
	}
	for len(following.C) > 0 { // of an earlier submission under the same id
		<-following.C
	}
	// An id of its own: a repetition is to be answered, too, and not dropped.
	result.Event.ID += "/" + event.NewID()
	if err := d.Bus.Publish(ctx, result.Subject, result.Event); err != nil {
		return fmt.Errorf("publish the submission: %w", err)
	}
	w.Header().Set("Location", "/v1/workloads/"+string(said.Workload))
	waiting, done := context.WithTimeout(ctx, storedTimeout)
	defer done()
	for {
		select {
		case <-waiting.Done():
			write(w, http.StatusAccepted, said)
			return nil
		case delivery, open := <-following.C:
			if !open {
				write(w, http.StatusAccepted, said)
				return nil
			}
			_, payload, _ := delivery.Event()
			switch e := payload.(type) {
			case *event.WorkloadRejected:
				w.Header().Del("Location")
				return refusal(e.Reason)
			case *event.WorkloadChanged:
				record := e.Record
				said.Record = &record
				write(w, http.StatusCreated, said)
				return nil
			}
		}
	}
}

// follow streams the life of a workload as server-sent events: what is true now,
// then every change, until the workload has ended and holds nothing, or the
// caller goes.
func (d *Door) follow(w http.ResponseWriter, r *http.Request, who string) error {
	record, err := d.record(r.Context(), who, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	following, err := d.Bus.Follow(ctx, bus.EventsStream, bus.EventsSubject(record.Queue, record.ID))
	if err != nil {
		return err
	}
	return d.stream(w, r, following.C, func(event.Payload) bool { return true }, func(p event.Payload) bool {
		changed, is := p.(*event.WorkloadChanged)
		return is && changed.Phase.Final() && !changed.Holding
	}, &record)
}

// followQueue streams what happens in a queue, of what the caller may see.
func (d *Door) followQueue(w http.ResponseWriter, r *http.Request, who string) error {
	name := r.PathValue("queue")
	queues, err := d.rights(r.Context())
	if err != nil {
		return err
	}
	if !workload.ValidName(name) || !mayAny(queues, who, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	following, err := d.Bus.Follow(ctx, bus.EventsStream, bus.EventsSubject(name, "*"))
	if err != nil {
		return err
	}
	return d.stream(w, r, following.C, func(p event.Payload) bool {
		changed, is := p.(*event.WorkloadChanged)
		return is && may(queues, who, name, changed.Namespace)
	}, func(event.Payload) bool { return false }, nil)
}

// heartbeat keeps proxies from closing a quiet stream.
const heartbeat = 15 * time.Second

// stream writes events until last says that one is the last. known is written
// first when the stream has nothing of the workload any more.
func (d *Door) stream(w http.ResponseWriter, r *http.Request, deliveries <-chan bus.Delivery, shown, last func(event.Payload) bool, known *workload.Record) error {
	flush := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if known != nil {
		if err := writeEvent(w, "", "dev.muster.workload.changed.v1", known); err != nil {
			return nil
		}
	}
	if known != nil && known.Phase.Final() && !known.Holding {
		return nil
	}
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	for {
		if err := flush.Flush(); err != nil {
			return nil // whoever listened has gone
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-alive.C:
			_, _ = io.WriteString(w, ": alive\n\n")
		case delivery, open := <-deliveries:
			if !open {
				return nil
			}
			envelope, payload, err := delivery.Event()
			if err != nil || !shown(payload) {
				continue
			}
			if writeEvent(w, envelope.ID, envelope.Type, payload) != nil {
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
