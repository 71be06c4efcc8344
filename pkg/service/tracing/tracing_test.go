package tracing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
)

const id workload.ID = "0d1b9e4c-1f0e-5b7e-9a52-0c2f3f1f2a3b"

func recorded(t *testing.T) (tracing.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(tracing.IDs{}), sdktrace.WithSpanProcessor(recorder))
	return tracing.New(provider.Tracer("test")), recorder
}

// TestATraceIsTheWorkloads: three processes add to one trace, with the traceparent of
// messages or without it.
func TestATraceIsTheWorkloads(t *testing.T) {
	t.Parallel()
	tracer, recorder := recorded(t)
	const submitters = "00-11111111111111111111111111111111-2222222222222222-01"
	first := tracer.Begin(id, submitters, "read")
	second := tracer.Continue(id, first.Traceparent(), "commit", time.Now())
	third := tracer.Continue(id, second.Traceparent(), "create", time.Now(), "key", "value")
	alone := tracer.Continue(id, "", "long after", time.Now())
	other := tracer.Continue(id, submitters, "of another trace", time.Now())
	third.End(errors.New("refused"))
	for _, span := range []tracing.Span{alone, other, second, first} {
		span.End(nil)
	}
	spans := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		spans[span.Name()] = span
		if got, want := span.SpanContext().TraceID().String(), strings.ReplaceAll(string(id), "-", ""); got != want {
			t.Errorf("span %q is of trace %s, want %s", span.Name(), got, want)
		}
	}
	for child, parent := range map[string]string{"commit": "read", "create": "commit", "long after": "read", "of another trace": "read"} {
		t.Run(child, func(t *testing.T) {
			if got, want := spans[child].Parent().SpanID(), spans[parent].SpanContext().SpanID(); got != want {
				t.Errorf("%q follows %s, want %q, %s", child, got, parent, want)
			}
		})
	}
	if links := spans["read"].Links(); len(links) != 1 || links[0].SpanContext.TraceID().String() != strings.Repeat("1", 32) {
		t.Errorf("links of the first span are %v, want the submitter's", links)
	}
	if status := spans["create"].Status(); status.Code != codes.Error || status.Description != "refused" {
		t.Errorf("status of the failed span is %v", status)
	}
	again, recorder2 := recorded(t)
	again.Begin(id, "", "read").End(nil)
	if got, want := recorder2.Ended()[0].SpanContext().SpanID(), spans["read"].SpanContext().SpanID(); got != want {
		t.Errorf("another process begins with span %s, want %s", got, want)
	}
}

func TestNothingIsTracedWithoutATracer(t *testing.T) {
	t.Parallel()
	var off tracing.Tracer
	tracer, _ := recorded(t)
	for _, span := range []tracing.Span{off.Begin(id, "", "x"), off.Continue(id, "", "x", time.Now()), tracer.Begin("", "", "x"), tracer.Continue("no uuid", "", "x", time.Now())} {
		if got := span.Traceparent(); got != "" {
			t.Errorf("the span of nothing has the context %s", got)
		}
		span.End(nil)
	}
}
