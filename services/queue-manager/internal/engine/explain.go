package engine

import (
	"context"

	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/workload"
)

// question asks the term's goroutine, which alone may look into the book.
type question struct {
	id     workload.ID
	answer chan<- explained
}

type explained struct {
	explanation workload.Explanation
	err         error
}

// serve answers questions that need the leader's memory, and takes changes of the
// configuration, until ctx ends.
func (e *engine) serve(ctx context.Context) error {
	if err := e.serveChanges(ctx); err != nil {
		return err
	}
	return query.Handle(ctx, e.Bus.Conn(), query.ExplainSubject, func(asking context.Context, r query.ExplainRequest) (query.ExplainAnswer, error) {
		answer := make(chan explained, 1)
		pass(asking, e.questions, question{r.ID, answer})
		select {
		case got := <-answer:
			return query.ExplainAnswer{Explanation: got.explanation}, got.err
		case <-asking.Done():
			return query.ExplainAnswer{}, asking.Err()
		case <-ctx.Done():
			return query.ExplainAnswer{}, ctx.Err()
		}
	})
}

func (e *engine) explain(q question) {
	explanation, err := e.book.Explain(q.id, e.clock.now())
	q.answer <- explained{explanation, err}
}
