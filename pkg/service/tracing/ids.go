package tracing

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"
)

// IDs is the SDK's IDGenerator: spans of Begin have ids derived from the workload, all
// others random ones.
type IDs struct{}

// NewIDs implements the SDK's IDGenerator.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if root, ok := ctx.Value(rootKey{}).(trace.SpanContext); ok {
		return root.TraceID(), root.SpanID()
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, newSpanID()
}

// NewSpanID implements the SDK's IDGenerator.
func (IDs) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpanID() }

func newSpanID() (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
