package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/policyfile/kueue"
)

// HoldSubject takes holds of queues from services that act for operators. The right to
// publish on ConfigureSubject would let them change everything else, too.
const HoldSubject = "muster.hold"

// HoldRequest holds a queue, or ends its hold. The same request again changes nothing.
type HoldRequest struct {
	Queue string `json:"queue"`
	// Resume ends the hold.
	Resume bool `json:"resume,omitempty"`
	// By is who asks, and Why the reason; both are shown to those who wait.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// ConfigureRequest is the change of the configuration that the request means.
func (r HoldRequest) ConfigureRequest(now time.Time) (ConfigureRequest, error) {
	if r.Resume {
		return ConfigureRequest{Delete: []kueue.Key{{Kind: kueue.QueueHold, Name: r.Queue}}}, nil
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "muster.dev/v1beta1", "kind": kueue.QueueHold, "metadata": map[string]string{"name": r.Queue},
		"spec": map[string]string{"since": now.UTC().Format(time.RFC3339), "by": r.By, "why": r.Why},
	})
	if err != nil {
		return ConfigureRequest{}, fmt.Errorf("write the hold of queue %s: %w", r.Queue, err)
	}
	return ConfigureRequest{Apply: []json.RawMessage{manifest}}, nil
}

// Hold holds a queue or ends its hold.
func (c *Client) Hold(ctx context.Context, request HoldRequest) (ConfigureAnswer, error) {
	return ask[ConfigureAnswer](ctx, c.transport, HoldSubject, request)
}

// HandleHold answers holds of queues until ctx ends.
func HandleHold(ctx context.Context, nc *nats.Conn, answer func(ctx context.Context, r HoldRequest) (ConfigureAnswer, error)) error {
	return Handle(ctx, nc, HoldSubject, answer)
}
