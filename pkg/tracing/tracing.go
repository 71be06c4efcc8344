// Package tracing makes one OpenTelemetry trace of the life of each workload: what
// intake reads, queue-manager decides, the dispatcher creates and capacity-watcher
// sees of it are spans of the same trace, whose id is the workload's.
//
// The span that begins it has an id made of the workload's, too. So whoever has
// nothing but a workload knows where to add a span, however long it waited and
// whatever died meanwhile; what messages carry in W3C's traceparent only says more
// precisely what followed from what.
//
// A submitter's own trace is linked, not continued: two submissions of one trace
// are two workloads.
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

	"muster.dev/muster/pkg/workload"
)

// Header is the name of the message header that carries the context.
const Header = "traceparent"

// Tracer makes spans. Its zero value makes none, at no cost.
type Tracer struct {
	tracer trace.Tracer
}

// New returns a tracer that makes spans of the given one, whose provider must have
// IDs as its generator of ids.
func New(tracer trace.Tracer) Tracer { return Tracer{tracer} }

// On reports whether spans are made.
func (t Tracer) On() bool { return t.tracer != nil }

// Begin begins the trace of a workload; link is the submitter's traceparent, or
// empty. Attributes are given as key, value, key, value.
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

// Continue adds a span to the trace of a workload, below the one of the message
// that led to it, or below the first one.
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

// Traceparent is what a message carries that follows from the span; empty when
// there is none.
func (s Span) Traceparent() string {
	if s.span == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.span), carrier)
	return carrier.Get(Header)
}

// End ends the span; an error says that the work failed.
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

// rootOf is the span that begins the trace of a workload; not valid when the id
// is none.
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

// rootKey is under what Begin hands its ids to IDs.
type rootKey struct{}
