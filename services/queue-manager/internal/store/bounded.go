package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres ends a statement that takes too long, and the kernel a connection whose peer does
// not answer. Neither helps against a pooler or proxy that takes a request, loses it, and keeps
// the connection: the one who waits for the answer has to give up by itself. The leader's own
// connection may answer all the while.

// longestRead bounds statements for which Postgres has no limit.
const longestRead = 10 * time.Minute

// bound ends statements without an answer. It is what pgx calls a tracer: the context that
// it returns is that of the statement.
type bound struct{ most time.Duration }

type (
	patienceKey struct{}
	cancelKey   struct{}
)

// patient has the statements of a context wait for longestRead.
func patient(ctx context.Context) context.Context {
	return context.WithValue(ctx, patienceKey{}, longestRead)
}

func (b bound) begin(ctx context.Context) context.Context {
	most := b.most
	if longer, is := ctx.Value(patienceKey{}).(time.Duration); is {
		most = longer
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (bound) end(ctx context.Context) {
	if cancel, is := ctx.Value(cancelKey{}).(context.CancelFunc); is {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (b bound) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return b.begin(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (b bound) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { b.end(ctx) }

// TraceBatchStart implements pgx.BatchTracer.
func (b bound) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return b.begin(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (bound) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (b bound) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { b.end(ctx) }
