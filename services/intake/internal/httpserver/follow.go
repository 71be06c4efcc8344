package httpserver

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// span is which events of a stream are asked for: those since a time, or the last one of each
// workload. past means that nothing is sent that comes later.
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
		if record, err = s.record(ctx, caller, record.ID); err != nil { // with what the skipped events had
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

// followAll streams the events of all workloads that the caller may see. It ends at once for a
// caller that may see none.
func (s *Server) followAll(w http.ResponseWriter, r *http.Request, caller string) error {
	asked, err := spanOf(r)
	if err != nil {
		return err
	}
	queues, err := s.rights(r.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	sent := stream{
		shown: func(p event.Payload) bool { return s.mayRead(ctx, caller, p) },
		last:  func(event.Payload) bool { return false },
	}
	var followings []*bus.Following
	for _, subject := range s.visibleSubjects(queues, caller) {
		following, _, err := s.events(ctx, asked, subject)
		if err != nil {
			return err
		}
		followings = append(followings, following)
	}
	deliveries, past := merge(ctx, followings)
	sent.deliveries = deliveries
	if asked.past {
		sent.ends = past
	}
	return s.send(w, r, sent)
}

// mayRead reports whether the caller may see an event of any subject: those of workloads by its
// queues, and the states of clusters, which are of no queue, as an operator.
func (s *Server) mayRead(ctx context.Context, caller string, p event.Payload) bool {
	switch p := p.(type) {
	case *event.WorkloadChanged:
		return s.may(s.presentRights(ctx), caller, p.Queue, p.Namespace)
	case *event.ClusterChanged:
		return s.isOperator(caller)
	}
	return false
}

// mostSubjects bounds the queues whose events are read one by one. Of more all are read, and
// those of others are left out.
const mostSubjects = 16

// visibleSubjects returns the subjects of the events that the caller may see: NATS sends no
// others, so that a caller costs no more than what is there for it.
func (s *Server) visibleSubjects(queues map[string]query.Queue, caller string) (subjects []string) {
	if s.isOperator(caller) {
		return []string{event.EventsSubject("*", "*")}
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if workload.ValidName(name) && mayAny(queues, caller, name) {
			subjects = append(subjects, event.EventsSubject(name, "*"))
		}
	}
	if len(subjects) > mostSubjects {
		return []string{event.EventsSubject("*", "*")}
	}
	return subjects
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
