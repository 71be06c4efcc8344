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

// span is which events of a stream are asked for: those since a time, or the last one of each
// workload. past says that nothing is sent that comes later.
type span struct {
	since time.Time
	past  bool
}

func spanOf(r *http.Request) (asked span, err error) {
	values := r.URL.Query()
	if text := values.Get("since"); text != "" {
		if asked.since, err = time.Parse(time.RFC3339, text); err != nil {
			return asked, fail(http.StatusBadRequest, "since %.80q: want a time such as 2026-01-02T15:04:05Z", text)
		}
	}
	switch text := values.Get("follow"); text {
	case "", "true":
	case "false":
		asked.past = true
	default:
		return asked, fail(http.StatusBadRequest, "follow %.80q: want true or false", text)
	}
	return asked, nil
}

// events reads the asked events of a subject. ends, unless nil, is closed when the last of
// them has been read.
func (s *Server) events(ctx context.Context, asked span, subject string) (following *bus.Following, ends <-chan struct{}, err error) {
	if asked.since.IsZero() {
		following, err = s.Bus.Follow(ctx, bus.EventsStream, subject)
	} else {
		following, err = s.Bus.ReplaySince(ctx, bus.EventsStream, asked.since, subject)
	}
	if err == nil && asked.past {
		ends = following.CaughtUp
	}
	return following, ends, err
}

// follow streams a workload as server-sent events: its present record or, when there is a
// time to begin with, what has happened since, then every change, until the workload has
// ended and holds no resources, or the caller disconnects.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, caller string) error {
	asked, err := spanOf(r)
	if err != nil {
		return err
	}
	record, err := s.record(r.Context(), caller, workload.ID(r.PathValue("id")))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	asked.past = asked.past || !asked.since.IsZero() && over(&record)
	following, ends, err := s.events(ctx, asked, event.EventsSubject("*", record.ID)) // it may be moved to another queue
	if err != nil {
		return err
	}
	sent := stream{deliveries: following.C, ends: ends}
	if asked.since.IsZero() {
		skipPast(ctx, following)
		if record, err = s.record(ctx, caller, record.ID); err != nil { // with what the skipped events said
			return err
		}
		sent.known = &record
	}
	queue := record.Queue
	sent.shown = func(p event.Payload) bool {
		if changed, is := p.(*event.WorkloadChanged); is {
			queue = changed.Queue
		}
		may := s.may(s.presentRights(ctx), caller, queue, record.Namespace)
		// What is past, and may wait in the channel, may be of a queue that it was moved from.
		if !may && isClosed(following.CaughtUp) && len(following.C) == 0 {
			cancel()
		}
		return may
	}
	sent.last = func(p event.Payload) bool {
		changed, is := p.(*event.WorkloadChanged)
		return is && over(&changed.Record)
	}
	return s.send(w, r, sent)
}

// over reports whether a workload has ended and holds no resources.
func over(r *workload.Record) bool { return r.Phase.Final() && !r.Holding }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
	asked, err := spanOf(r)
	if err != nil {
		return err
	}
	queues, err := s.rights(r.Context())
	if err != nil {
		return err
	}
	if !workload.ValidName(name) || !s.mayAny(queues, caller, name) {
		return fail(http.StatusNotFound, "there is no queue %q", name)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	following, ends, err := s.events(ctx, asked, event.EventsSubject(name, "*"))
	if err != nil {
		return err
	}
	return s.send(w, r, stream{
		deliveries: following.C, ends: ends,
		shown: func(p event.Payload) bool {
			queues := s.presentRights(ctx)
			if !s.mayAny(queues, caller, name) {
				cancel()
			}
			changed, is := p.(*event.WorkloadChanged)
			return is && s.may(queues, caller, name, changed.Namespace)
		},
		last: func(event.Payload) bool { return false },
	})
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

// stream is what is sent of events: those shown, up to the last one, or to what there is when
// ends is closed. known, unless nil, comes first: the bus may have no event of the workload
// any more.
type stream struct {
	deliveries  <-chan bus.Delivery
	ends        <-chan struct{}
	shown, last func(event.Payload) bool
	known       *workload.Record
}

// send writes a stream.
func (s *Server) send(w http.ResponseWriter, r *http.Request, sent stream) error {
	flush := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	begin := func() error { return flush.SetWriteDeadline(time.Now().Add(s.Limits.Write)) }
	if err := begin(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	if known := sent.known; known != nil {
		if err := writeEvent(w, event.Envelope{Type: (&event.WorkloadChanged{}).EventType()}, known); err != nil || over(known) {
			return nil
		}
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
		case <-sent.ends:
			if len(sent.deliveries) == 0 {
				return nil
			}
		case delivery, open := <-sent.deliveries:
			if !open {
				return nil
			}
			if duplicates.Seen(delivery) {
				continue
			}
			envelope, payload, err := delivery.Event()
			if err != nil || !sent.shown(payload) {
				continue
			}
			if begin() != nil || writeEvent(w, envelope, payload) != nil {
				return nil
			}
			if sent.last(payload) {
				_ = flush.Flush()
				return nil
			}
		}
	}
}

// writeEvent writes one server-sent event. Readers of such streams skip fields that they do
// not know, such as the time.
func writeEvent(w io.Writer, envelope event.Envelope, payload any) error {
	data, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	var text strings.Builder
	if envelope.ID != "" {
		fmt.Fprintf(&text, "id: %s\ntime: %s\n", envelope.ID, envelope.Time.UTC().Format(time.RFC3339Nano))
	}
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", envelope.Type, data)
	_, err = io.WriteString(w, text.String())
	return err
}
