package query

import (
	"context"
	"encoding/json"
	"fmt"
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

// handle is Handle, and tells on which subject the request came.
func handle[Request, Answer any](ctx context.Context, nc *nats.Conn, subject string,
	answer func(ctx context.Context, subject string, r Request) (Answer, error),
) error {
	subscription, err := nc.QueueSubscribe(subject, serversQueue, func(msg *nats.Msg) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		var request Request
		if err := json.Unmarshal(msg.Data, &request); err != nil {
			respond(msg, nil, fmt.Errorf("request is not the JSON that %s takes: %w", subject, err))
			return
		}
		result, err := answer(ctx, msg.Subject, request)
		respond(msg, result, err)
	})
	if err != nil {
		return fmt.Errorf("serve %s: %w", subject, err)
	}
	context.AfterFunc(ctx, func() { _ = subscription.Unsubscribe() })
	return nil
}

// respond sends the answer; whoever asked has gone if that fails.
func respond(msg *nats.Msg, answer any, err error) {
	reply := nats.NewMsg(msg.Reply)
	if err != nil {
		reply.Header.Set(problemHeader, "1")
		answer = Problem{Error: err.Error()}
	}
	if reply.Data, err = json.Marshal(answer); err == nil {
		_ = msg.RespondMsg(reply)
	}
}
