// Package tracing makes one OpenTelemetry trace for each workload: the steps of intake,
// queue-manager, the dispatcher and capacity-watcher are spans of one trace, whose id is
// the workload's.
//
// The id of the root span derives from the workload's, too. So any process can add a span
// knowing only the workload, after any wait and any crash; the W3C traceparent in messages
// only adds the exact parent.
//
// The submitter's trace is linked, not continued: two submissions of one trace are two
// workloads.
//
// It is not for exporting spans (package service) nor for metrics.
package tracing

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"muster.dev/muster/pkg/spec/workload"
)

// Header is the name of the message header that carries the context.
const Header = "traceparent"

// Tracer makes spans. Its zero value makes none, at no cost.
type Tracer struct {
	tracer trace.Tracer
}

// New returns a Tracer on the given one, whose provider must use IDs as its IDGenerator.
func New(tracer trace.Tracer) Tracer { return Tracer{tracer} }

// On reports whether the tracer makes spans.
func (t Tracer) On() bool { return t.tracer != nil }

// Begin makes the root span of a workload's trace; link is the submitter's traceparent,
// or empty. Attributes are key, value, key, value.
func (t Tracer) Begin(id workload.ID, link, name string, attributes ...string) Span {
	root := rootOf(id)
	if !t.On() || !root.IsValid() {
		return Span{}
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), described(id, attributes)}
	if of := contextOf(link); of.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: of}))
	}
	_, span := t.tracer.Start(context.WithValue(context.Background(), rootKey{}, root), name, options...)
	return Span{span}
}

// Continue adds a span to the trace of a workload; its parent is the span in traceparent,
// or the root span.
func (t Tracer) Continue(id workload.ID, traceparent, name string, began time.Time, attributes ...string) Span {
	parent := rootOf(id)
	if !t.On() || !parent.IsValid() {
		return Span{}
	}
	if of := contextOf(traceparent); of.TraceID() == parent.TraceID() {
		parent = of
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(began), described(id, attributes))
	return Span{span}
}

func described(id workload.ID, pairs []string) trace.SpanStartEventOption {
	attributes := []attribute.KeyValue{attribute.String("muster.workload", string(id))}
	for i := 0; i+1 < len(pairs); i += 2 {
		attributes = append(attributes, attribute.String(pairs[i], pairs[i+1]))
	}
	return trace.WithAttributes(attributes...)
}

// Span is a piece of work on a workload. The zero value is none.
type Span struct {
	span trace.Span
}

// Traceparent returns the traceparent for messages that follow from the span; it is empty
// for the zero Span.
func (s Span) Traceparent() string {
	if s.span == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.span), carrier)
	return carrier.Get(Header)
}

// End ends the span; an error means that the work failed.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}

func contextOf(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{Header: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// rootOf returns the root span of a workload's trace; it is not valid if the id is no
// UUID.
func rootOf(id workload.ID) trace.SpanContext {
	parsed, err := uuid.Parse(string(id))
	if err != nil {
		return trace.SpanContext{}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "first span of workload %s", parsed))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(parsed), SpanID: trace.SpanID(sum[:8]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// rootKey is the context key by which Begin passes its ids to IDs.
type rootKey struct{}
