package e2e

import (
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// traced starts a stack whose services have providers of spans of their own and
// write to one place, as a collector would have it.
func traced(t *testing.T) (*world, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	w := startWorld(t, stack.Options{Tracer: func(name string) tracing.Tracer {
		provider := service.NewTracerProvider(name, 1, sdktrace.WithSyncer(spans))
		return tracing.New(provider.Tracer("muster.dev/muster"))
	}})
	return w, spans
}

// inTrace waits for a span of a workload's trace.
func inTrace(w *world, spans *tracetest.InMemoryExporter, id workload.ID, service, name string) tracetest.SpanStub {
	w.t.Helper()
	var found tracetest.SpanStub
	w.until("a span "+name+" of "+service, func() bool {
		for _, span := range spans.GetSpans() {
			for _, attribute := range span.Resource.Attributes() {
				if attribute.Key == "service.name" && attribute.Value.AsString() == "muster-"+service && span.Name == name &&
					span.SpanContext.TraceID().String() == strings.ReplaceAll(string(id), "-", "") {
					found = span
					return true
				}
			}
		}
		return false
	})
	return found
}

// One trace has what intake read, what queue-manager decided, what the dispatcher
// created and what capacity-watcher saw, each below what it followed from. The
// decision comes from a queue-manager that began after the submission, from the
// ledger alone.
func TestOneTraceFollowsAWorkload(t *testing.T) {
	t.Parallel()
	w, spans := traced(t)
	id := w.submit(stack.RayCluster("traced", 1, 1))
	w.waits(id, workload.ReasonNoNodes)
	read := inTrace(w, spans, id, "intake", "submission read")
	queued := inTrace(w, spans, id, "queue-manager", "workload queued")
	if queued.Parent.SpanID() != read.SpanContext.SpanID() {
		t.Errorf("%q follows span %s, want intake's, %s", queued.Name, queued.Parent.SpanID(), read.SpanContext.SpanID())
	}
	if err := w.StopService(stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	if err := w.StartService(t.Context(), stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.reaches(id, workload.Running)

	decided := inTrace(w, spans, id, "queue-manager", "command present")
	created := inTrace(w, spans, id, "dispatcher", "object created")
	inTrace(w, spans, id, "queue-manager", "workload running")
	inTrace(w, spans, id, "capacity-watcher", "pods seen")
	if decided.Parent.SpanID() != read.SpanContext.SpanID() || created.Parent.SpanID() != decided.SpanContext.SpanID() {
		t.Errorf("parents are wrong: %q of %s, %q of %s", decided.Name, decided.Parent.SpanID(), created.Name, created.Parent.SpanID())
	}
	context := "00-" + decided.SpanContext.TraceID().String() + "-" + decided.SpanContext.SpanID().String() + "-01"
	object, err := w.rayClusters().Get(t.Context(), "traced", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := object.GetAnnotations()[kube.TraceparentKey]; got != context {
		t.Errorf("the object's context is %q, want %q", got, context)
	}
	// The message itself says so, in its header and as CloudEvents do.
	command, err := w.Bus.LastMessage(t.Context(), bus.DispatchStream, event.DispatchSubject(w.Pool, id))
	if err != nil || command == nil {
		t.Fatal(command, err)
	}
	for where, got := range map[string]string{"header": command.Headers.Get(tracing.Header), "attribute": event.TraceparentOf(command.Data)} {
		t.Run(where, func(t *testing.T) {
			if !strings.HasPrefix(got, "00-"+decided.SpanContext.TraceID().String()) {
				t.Errorf("the command's %s is %q, want the trace", where, got)
			}
		})
	}
}

// What is in the outbox keeps its context: who publishes it later says the same.
func TestTheOutboxKeepsTheContext(t *testing.T) {
	t.Parallel()
	w, spans := traced(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	if err := w.StopService(stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	id := w.submit(stack.RayCluster("kept", 1, 1))
	w.reaches(id, workload.Admitted)
	decided := inTrace(w, spans, id, "queue-manager", "command present")
	if err := w.StartService(t.Context(), stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	w.reaches(id, workload.Running)
	if created := inTrace(w, spans, id, "dispatcher", "object created"); created.Parent.SpanID() != decided.SpanContext.SpanID() {
		t.Errorf("the creation follows span %s, want %s", created.Parent.SpanID(), decided.SpanContext.SpanID())
	}
}
