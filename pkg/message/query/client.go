package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrNoAnswer is wrapped when no queue-manager answers.
var ErrNoAnswer = errors.New("no queue-manager answers: is it running and connected to the same NATS?")

// ProblemError is queue-manager's answer to a request that it refuses or that has
// failed.
type ProblemError struct {
	Message string
	// Busy: too much is being asked; the same request may be sent again later.
	Busy bool
	// After is how long the same request is refused for, if that is known.
	After time.Duration
}

// Busy is the answer to a request that may be sent again later.
func Busy(message string) error { return BusyFor(message, 0) }

// BusyFor is the answer to a request that may be sent again after a time.
func BusyFor(message string, after time.Duration) error {
	return &ProblemError{Message: message, Busy: true, After: after}
}

func (e *ProblemError) Error() string { return e.Message }

// Transport carries a question to a queue-manager, and returns its answer as JSON. A
// refusal is a ProblemError.
type Transport interface {
	Ask(ctx context.Context, subject string, request []byte) (answer []byte, err error)
}

// Client asks queue-manager. It may be used concurrently.
type Client struct {
	transport Transport
}

// NewClient returns a client on a NATS connection.
func NewClient(nc *nats.Conn) *Client { return &Client{overNATS{nc}} }

// NewClientOver returns a client that asks by another way.
func NewClientOver(t Transport) *Client { return &Client{t} }

// Workloads returns one page.
func (c *Client) Workloads(ctx context.Context, request WorkloadsRequest) (WorkloadsAnswer, error) {
	answer, err := ask[WorkloadsAnswer](ctx, c.transport, WorkloadsSubject, request)
	if err == nil && len(request.Labels) > 0 && !answer.Selected {
		return WorkloadsAnswer{}, fmt.Errorf("list workloads by labels: %w", ErrNotSelected)
	}
	return answer, err
}

// History returns the life of a workload.
func (c *Client) History(ctx context.Context, request HistoryRequest) (HistoryAnswer, error) {
	return ask[HistoryAnswer](ctx, c.transport, HistorySubject, request)
}

// Queues returns all queues.
func (c *Client) Queues(ctx context.Context) (QueuesAnswer, error) {
	return ask[QueuesAnswer](ctx, c.transport, QueuesSubject, struct{}{})
}

// Strays returns what is to become of pods that are not of Muster.
func (c *Client) Strays(ctx context.Context) (StraysAnswer, error) {
	return ask[StraysAnswer](ctx, c.transport, StraysSubject, struct{}{})
}

// Explain returns why a workload waits and what would admit it.
func (c *Client) Explain(ctx context.Context, request ExplainRequest) (ExplainAnswer, error) {
	return ask[ExplainAnswer](ctx, c.transport, ExplainSubject, request)
}

// problemHeader marks an answer that is a Problem.
const problemHeader = "Muster-Problem"

// askMost bounds a question without a deadline: an answer may be lost with a NATS server,
// and the caller would wait for ever.
const askMost = 10 * time.Second

func ask[Answer any](ctx context.Context, t Transport, subject string, request any) (Answer, error) {
	var answer Answer
	data, err := json.Marshal(request)
	if err != nil {
		return answer, fmt.Errorf("encode request for %s: %w", subject, err)
	}
	reply, err := t.Ask(ctx, subject, data)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return answer, fmt.Errorf("read answer from %s: %w", subject, err)
	}
	return answer, nil
}

// overNATS asks by request and reply.
type overNATS struct{ nc *nats.Conn }

// Ask implements Transport.
func (o overNATS) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askMost)
		defer cancel()
	}
	reply, err := o.nc.RequestWithContext(ctx, subject, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("ask %s: %w", subject, ErrNoAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", subject, err)
	}
	if reply.Header.Get(problemHeader) != "" {
		var problem Problem
		if err := json.Unmarshal(reply.Data, &problem); err != nil {
			return nil, fmt.Errorf("read problem from %s: %w", subject, err)
		}
		return nil, fmt.Errorf("ask %s: %w", subject, &ProblemError{Message: problem.Error, Busy: problem.Busy, After: time.Duration(problem.AfterSeconds) * time.Second})
	}
	return reply.Data, nil
}
