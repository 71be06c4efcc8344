package overhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
)

// Limits of a stream: one line of it, how long it may be silent (the server sends a comment
// every 15 seconds), and the pause before it is opened again.
const (
	longestLine = 8 << 20
	silence     = 45 * time.Second
	openAgain   = time.Second
)

// Event is an event of a stream.
type Event struct {
	// Type is that of the CloudEvent, such as dev.muster.workload.changed.v1.
	Type string
	// At is when it happened; zero of what the server does not date, such as a present state.
	At   time.Time
	Data json.RawMessage
}

// From is with which events a stream begins: with those since a time, or with the last one of
// each workload. With Past it ends with what there is.
type From struct {
	Since time.Time
	Past  bool
}

func (f From) parameters() url.Values {
	values := url.Values{}
	if !f.Since.IsZero() {
		values.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if f.Past {
		values.Set("follow", "false")
	}
	return values
}

// Payload reads what the event has.
func (e Event) Payload() (event.Payload, error) {
	payload, err := event.Decode(event.Envelope{Type: e.Type, Data: e.Data})
	if err != nil {
		return nil, fmt.Errorf("read an event of the stream: %w", err)
	}
	return payload, nil
}

// Step reads the event as a step in the life of a workload.
func (e Event) Step() (follow.Step, error) {
	payload, err := e.Payload()
	if err != nil {
		return follow.Step{}, err
	}
	step, known := follow.StepOf(payload)
	if !known {
		return follow.Step{}, fmt.Errorf("read an event of the stream: got a %s, want the change of a workload", e.Type)
	}
	if step.At = e.At; step.At.IsZero() {
		step.At = time.Now()
	}
	return step, nil
}

// QueueEvents hands the events of a queue to handle, until ctx ends, handle fails, or the
// connection is lost.
func (c *Client) QueueEvents(ctx context.Context, queue string, from From, handle func(Event) error) error {
	return c.stream(ctx, "/v1/queues/"+url.PathEscape(queue)+"/events", from, handle)
}

// Events hands the events of all workloads that the caller may see to handle, as QueueEvents.
func (c *Client) Events(ctx context.Context, from From, handle func(Event) error) error {
	return c.stream(ctx, "/v1/events", from, handle)
}

// WorkloadEvents hands the present state of a workload, unless there is a time to begin with,
// and then its events to handle, until the workload has ended, ctx ends, handle fails, or the
// connection is lost.
func (c *Client) WorkloadEvents(ctx context.Context, id workload.ID, from From, handle func(Event) error) error {
	return c.stream(ctx, "/v1/workloads/"+url.PathEscape(string(id))+"/events", from, handle)
}

// Life follows one workload. A lost connection is opened again. Its methods may not be
// called concurrently.
type Life struct {
	steps  chan follow.Step
	failed chan error
}

// Follow follows a workload until ctx ends. Its steps are those after the known state.
func (c *Client) Follow(ctx context.Context, known workload.Record) *Life {
	l := &Life{steps: make(chan follow.Step), failed: make(chan error, 1)}
	go func() { l.failed <- l.run(ctx, c, known) }()
	return l
}

// Next waits for the next step.
func (l *Life) Next(ctx context.Context) (follow.Step, error) {
	select {
	case <-ctx.Done():
		return follow.Step{}, ctx.Err()
	case step := <-l.steps:
		return step, nil
	case err := <-l.failed:
		l.failed <- err
		return follow.Step{}, err
	}
}

// run passes steps on. Each connection begins with the present state, which is a step only
// when it is new.
func (l *Life) run(ctx context.Context, c *Client, last workload.Record) error {
	id := last.ID
	for {
		err := c.WorkloadEvents(ctx, id, From{}, func(e Event) error {
			step, err := e.Step()
			if err != nil || sameStep(step.Record, last) {
				return err
			}
			if step.Record.Phase != workload.Rejected { // another submission with its key changes nothing
				last = step.Record
			}
			select {
			case l.steps <- step:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		var refused *refusedError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && refused.status != http.StatusServiceUnavailable && refused.status != http.StatusTooManyRequests && refused.status != http.StatusNotFound:
			return err
		case err != nil && !errors.As(err, &refused) && !errors.Is(err, exit.ErrUnreachable):
			return err
		}
		select { // the server was away, or stores the workload at the moment
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(openAgain):
		}
	}
}

// sameStep reports whether two records show the same.
func sameStep(a, b workload.Record) bool {
	return a.Phase == b.Phase && a.Attempt == b.Attempt && a.Queue == b.Queue && a.Holding == b.Holding && a.Priority == b.Priority &&
		reflect.DeepEqual(a.Hold, b.Hold) && reflect.DeepEqual(a.Reason, b.Reason) && a.Saved().Last(a.Attempt).Equal(b.Saved().Last(b.Attempt))
}

// stream reads server-sent events. Its error wraps exit.ErrUnreachable when the connection is lost.
func (c *Client) stream(ctx context.Context, path string, from From, handle func(Event) error) error {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	quiet := time.AfterFunc(silence, func() { lost(errSilent) })
	defer quiet.Stop()
	answer, err := c.send(ctx, request{method: http.MethodGet, path: path, parameters: from.parameters()})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(answer.Body, longestLine)) // without it the status is enough
		return fmt.Errorf("GET %s: %w", path, refusal(answer.StatusCode, content))
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, longestLine)
	var e Event
	for lines.Scan() {
		quiet.Reset(silence)
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && e.Type != "":
			if err := handle(e); err != nil {
				return err
			}
			e = Event{}
		case name == "event":
			e.Type = value
		case name == "time":
			e.At, _ = time.Parse(time.RFC3339Nano, value) // without it the event is undated
		case name == "data":
			e.Data = append(e.Data, value...)
		}
	}
	if err := lines.Err(); err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
			err = cause
		}
		return fmt.Errorf("GET %s: %w", path, c.unreachable(err))
	}
	return nil
}

// errSilent ends a connection on which nothing comes any more.
var errSilent = fmt.Errorf("nothing came for %s", silence)
