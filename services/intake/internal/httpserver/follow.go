package httpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

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
	following, err := s.Bus.Follow(ctx, bus.EventsStream, event.EventsSubject("*", record.ID)) // it may be moved to another queue
	if err != nil {
		return err
	}
	skipPast(ctx, following)
	if record, err = s.record(ctx, caller, record.ID); err != nil { // with what the skipped events said
		return err
	}
	queue := record.Queue
	return s.stream(w, r, following.C, func(p event.Payload) bool {
		if changed, is := p.(*event.WorkloadChanged); is {
			queue = changed.Queue
		}
		if !s.may(s.presentRights(ctx), caller, queue, record.Namespace) {
			cancel()
			return false
		}
		return true
	}, func(p event.Payload) bool {
		changed, is := p.(*event.WorkloadChanged)
		return is && changed.Phase.Final() && !changed.Holding
	}, &record)
}

// skipPast drops the events from before the subscription. They are no changes: the last one on
// the subject of a queue from which the workload was moved is older than its present state.
func skipPast(ctx context.Context, following *bus.Following) {
	ctx, cancel := context.WithTimeout(ctx, storedTimeout)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-following.C:
			if !open {
				return
			}
		case <-following.CaughtUp:
			for len(following.C) > 0 {
				<-following.C
			}
			return
		}
	}
}

// followQueue streams the events of a queue that the caller may see.
func (s *Server) followQueue(w http.ResponseWriter, r *http.Request, caller string) error {
	name := r.PathValue("queue")
	queues, err := s.rights(r.Context())
	if err != nil {
		return err
	}
	if !workload.ValidName(name) || !s.mayAny(queues, caller, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	following, err := s.Bus.Follow(ctx, bus.EventsStream, event.EventsSubject(name, "*"))
	if err != nil {
		return err
	}
	return s.stream(w, r, following.C, func(p event.Payload) bool {
		queues := s.presentRights(ctx)
		if !s.mayAny(queues, caller, name) {
			cancel()
		}
		changed, is := p.(*event.WorkloadChanged)
		return is && s.may(queues, caller, name, changed.Namespace)
	}, func(event.Payload) bool { return false }, nil)
}

// presentRights returns the queues for an event of a stream, which may be open for longer
// than its caller has the right. While queue-manager does not answer, they are the last known.
func (s *Server) presentRights(ctx context.Context) map[string]query.Queue {
	within, cancel := context.WithTimeout(ctx, rightsKept)
	defer cancel()
	queues, err := s.rights(within)
	if err == nil {
		return queues
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues
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
