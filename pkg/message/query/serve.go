package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// answerTimeout bounds the work on one request.
const answerTimeout = 10 * time.Second

// serversQueue lets one of several queue-managers answer.
const serversQueue = "queue-manager"

// Handle answers the requests on a subject until ctx ends.
func Handle[Request, Answer any](ctx context.Context, nc *nats.Conn, subject string,
	answer func(context.Context, Request) (Answer, error),
) error {
	return handle(ctx, nc, subject, func(ctx context.Context, _ string, r Request) (Answer, error) { return answer(ctx, r) })
}

// handle is Handle with the subject on which the request came.
func handle[Request, Answer any](ctx context.Context, nc *nats.Conn, subject string,
	answer func(ctx context.Context, subject string, r Request) (Answer, error),
) error {
	return subscribe(ctx, nc, subject, func(msg *nats.Msg) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		request, err := read[Request](subject, msg.Data)
		if err != nil {
			respond(msg, nil, err)
			return
		}
		result, err := answer(ctx, msg.Subject, request)
		respond(msg, result, err)
	})
}

// HandleEach answers the requests on a subject until ctx ends, each in a goroutine of
// its own if admit lets it in; done ends it. caller is the part of the subject of the
// reply that distinguishes callers: NATS lets each user have only replies of its own.
func HandleEach[Request, Answer any](ctx context.Context, nc *nats.Conn, subject string,
	admit func(caller string, r Request) (done func(), err error), answer func(context.Context, Request) (Answer, error),
) error {
	return subscribe(ctx, nc, subject, func(msg *nats.Msg) {
		request, err := read[Request](subject, msg.Data)
		if err != nil {
			respond(msg, nil, err)
			return
		}
		done, err := admit(callerOf(msg.Reply), request)
		if err != nil {
			respond(msg, nil, err)
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(ctx, answerTimeout)
			defer cancel()
			result, err := answer(ctx, request)
			done() // before the answer: who has it may ask again
			respond(msg, result, err)
		}()
	})
}

// read reads a request. One that has no fields is not decoded, however long it is.
func read[Request any](subject string, data []byte) (request Request, err error) {
	if _, is := any(request).(struct{}); is {
		return request, nil
	}
	if err := json.Unmarshal(data, &request); err != nil {
		return request, fmt.Errorf("request is not the JSON that %s takes: %w", subject, err)
	}
	return request, nil
}

// callerOf is the prefix of a caller's replies: of a user with an nkey one of its own,
// of others that of the connection.
func callerOf(reply string) string {
	first, rest, _ := strings.Cut(reply, ".")
	if first != nats.InboxPrefix[:len(nats.InboxPrefix)-1] {
		return first
	}
	connection, _, _ := strings.Cut(rest, ".")
	return connection
}

func subscribe(ctx context.Context, nc *nats.Conn, subject string, handle func(*nats.Msg)) error {
	subscription, err := nc.QueueSubscribe(subject, serversQueue, handle)
	if err != nil {
		return fmt.Errorf("serve %s: %w", subject, err)
	}
	context.AfterFunc(ctx, func() { _ = subscription.Unsubscribe() })
	return nil
}

// respond sends the answer. When that fails, the client has gone.
func respond(msg *nats.Msg, answer any, err error) {
	reply := nats.NewMsg(msg.Reply)
	if err != nil {
		reply.Header.Set(problemHeader, "1")
		problem := Problem{Error: err.Error()}
		var known *ProblemError
		if errors.As(err, &known) {
			problem.Busy, problem.AfterSeconds = known.Busy, int(known.After/time.Second)
		}
		answer = problem
	}
	if reply.Data, err = json.Marshal(answer); err == nil {
		_ = msg.RespondMsg(reply)
	}
}
