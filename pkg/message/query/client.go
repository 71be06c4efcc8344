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

// ProblemError is what queue-manager says of a request that it refuses or that has
// failed.
type ProblemError struct {
	Message string
	// Busy: too much is being asked; the same request may be sent again later.
	Busy bool
}

// Busy is the answer to a request that may be sent again later.
func Busy(message string) error { return &ProblemError{Message: message, Busy: true} }

func (e *ProblemError) Error() string { return e.Message }

// Client asks over a NATS connection. It may be used concurrently.
type Client struct {
	nc *nats.Conn
}

// NewClient returns a client on the connection.
func NewClient(nc *nats.Conn) *Client { return &Client{nc: nc} }

// Workloads returns one page.
func (c *Client) Workloads(ctx context.Context, request WorkloadsRequest) (WorkloadsAnswer, error) {
	return ask[WorkloadsAnswer](ctx, c.nc, WorkloadsSubject, request)
}

// History returns the life of a workload.
func (c *Client) History(ctx context.Context, request HistoryRequest) (HistoryAnswer, error) {
	return ask[HistoryAnswer](ctx, c.nc, HistorySubject, request)
}

// Queues returns all queues.
func (c *Client) Queues(ctx context.Context) (QueuesAnswer, error) {
	return ask[QueuesAnswer](ctx, c.nc, QueuesSubject, struct{}{})
}

// Nodes returns all nodes.
func (c *Client) Nodes(ctx context.Context) (NodesAnswer, error) {
	return ask[NodesAnswer](ctx, c.nc, NodesSubject, struct{}{})
}

// Strays returns what is to become of pods that are not of Muster.
func (c *Client) Strays(ctx context.Context) (StraysAnswer, error) {
	return ask[StraysAnswer](ctx, c.nc, StraysSubject, struct{}{})
}

// Explain says why a workload waits and what would admit it.
func (c *Client) Explain(ctx context.Context, request ExplainRequest) (ExplainAnswer, error) {
	return ask[ExplainAnswer](ctx, c.nc, ExplainSubject, request)
}

// problemHeader marks an answer that is a Problem.
const problemHeader = "Muster-Problem"

// askMost bounds a question without a deadline: an answer may be lost with a NATS server,
// and the caller would wait for ever.
const askMost = 10 * time.Second

func ask[Answer any](ctx context.Context, nc *nats.Conn, subject string, request any) (Answer, error) {
	var answer Answer
	data, err := json.Marshal(request)
	if err != nil {
		return answer, fmt.Errorf("encode request for %s: %w", subject, err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askMost)
		defer cancel()
	}
	reply, err := nc.RequestWithContext(ctx, subject, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return answer, fmt.Errorf("ask %s: %w", subject, ErrNoAnswer)
	}
	if err != nil {
		return answer, fmt.Errorf("ask %s: %w", subject, err)
	}
	if reply.Header.Get(problemHeader) != "" {
		var problem Problem
		if err := json.Unmarshal(reply.Data, &problem); err != nil {
			return answer, fmt.Errorf("read problem from %s: %w", subject, err)
		}
		return answer, fmt.Errorf("ask %s: %w", subject, &ProblemError{Message: problem.Error, Busy: problem.Busy})
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return answer, fmt.Errorf("read answer from %s: %w", subject, err)
	}
	return answer, nil
}
