package engine

import (
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// spans are of what one commit has.
type spans []tracing.Span

func (s spans) end(err error) {
	for _, span := range s {
		span.End(err)
	}
}

// trace begins a span for each message of the changes, in the trace of its
// workload, and puts the context into the message: the outbox keeps it, so what
// follows from a commit is in the trace even when another process publishes it.
// The spans end with the commit.
func (s *Step) trace(changes state.Changes, began time.Time) spans {
	if !s.Tracer.On() {
		return nil
	}
	var begun spans
	for i := range changes.Messages {
		m := &changes.Messages[i]
		id, name := workload.ID(m.Payload.CloudEventSubject()), m.Payload.EventType()
		var attributes []string
		switch p := m.Payload.(type) {
		case *event.WorkloadChanged:
			name, attributes = "workload "+string(p.Phase), []string{"muster.queue", p.Queue}
		case *event.WorkloadRejected:
			name, attributes = "workload rejected", []string{"muster.queue", p.Queue}
		case *event.GangCommand:
			name, attributes = "command "+p.State, []string{"muster.queue", p.Queue, "muster.cluster", p.Cluster}
		}
		span := s.Tracer.Continue(id, "", name, began, attributes...)
		m.Traceparent = span.Traceparent()
		begun = append(begun, span)
	}
	return begun
}
