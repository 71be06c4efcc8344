package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/policyfile/kueue"
)

// ConfigureSubject is for changes of the configuration from people and tools. The Kubernetes
// controller of a cluster has a subject of its own, ClusterConfigureSubject: the right to
// publish on a subject shows the sender of an object, not the content of the message.
const ConfigureSubject = "muster.configure"

// ClusterConfigureSubject is for the objects of a cluster from the Kubernetes
// controller that watches it.
func ClusterConfigureSubject(cluster string) string { return ConfigureSubject + "." + cluster }

// originOf is who speaks on a subject of configuration: the cluster, or nothing
// for people.
func originOf(subject string) string {
	return strings.TrimPrefix(strings.TrimPrefix(subject, ConfigureSubject), ".")
}

// MaxConfigured bounds the objects that are kept.
const MaxConfigured = 10_000

// ConfigureRequest changes the configuration of queues: all of it or nothing. It
// is answered by the queue-manager that leads, once the change is in Postgres.
// The same request again changes nothing.
type ConfigureRequest struct {
	// Apply are Kueue's manifests as JSON, in any order.
	Apply []json.RawMessage `json:"apply,omitempty"`
	// Delete names the objects to remove.
	Delete []kueue.Key `json:"delete,omitempty"`
	// DryRun reports the result without a change.
	DryRun bool `json:"dryRun,omitempty"`
}

// ConfigureAnswer has the result for each object.
type ConfigureAnswer struct {
	// Version of the ledger that has the change; the previous one when nothing
	// changed.
	Version int64        `json:"version"`
	Objects []Configured `json:"objects"`
}

// Outcomes of a change for one object, in kubectl's words.
const (
	Created   = "created"
	Changed   = "configured"
	Unchanged = "unchanged"
	Deleted   = "deleted"
	NotThere  = "not found"
)

// Configured is the result for an object.
type Configured struct {
	kueue.Key
	Outcome string `json:"outcome"`
	// Notes name its settings that were accepted and have no effect.
	Notes []string `json:"notes,omitempty"`
	// Held is why nothing is admitted through a ClusterQueue or LocalQueue: it is inactive,
	// stopped or held. Empty for one that is active.
	Held string `json:"held,omitempty"`
}

// AppliedAnswer lists the applied objects, by kind and name.
type AppliedAnswer struct {
	Objects []Applied `json:"objects"`
}

// Applied is an object that was applied at run time.
type Applied struct {
	kueue.Key
	// Origin is the cluster that has the object; empty when it was applied.
	Origin   string          `json:"origin,omitempty"`
	Manifest json.RawMessage `json:"manifest"`
	// Version of the ledger that changed it last.
	Version int64 `json:"version"`
}

// Configure changes the configuration; cluster is empty except for the
// Kubernetes controller of a cluster.
func (c *Client) Configure(ctx context.Context, cluster string, request ConfigureRequest) (ConfigureAnswer, error) {
	subject := ConfigureSubject
	if cluster != "" {
		subject = ClusterConfigureSubject(cluster)
	}
	return ask[ConfigureAnswer](ctx, c.transport, subject, request)
}

// Applied lists the objects that are kept.
func (c *Client) Applied(ctx context.Context) (AppliedAnswer, error) {
	return ask[AppliedAnswer](ctx, c.transport, AppliedSubject, struct{}{})
}

// HandleConfigure answers changes of the configuration until ctx ends. origin is
// who asks, see originOf.
func HandleConfigure(ctx context.Context, nc *nats.Conn, answer func(ctx context.Context, origin string, r ConfigureRequest) (ConfigureAnswer, error)) error {
	for _, subject := range []string{ConfigureSubject, ClusterConfigureSubject("*")} {
		err := handle(ctx, nc, subject, func(ctx context.Context, on string, r ConfigureRequest) (ConfigureAnswer, error) {
			return answer(ctx, originOf(on), r)
		})
		if err != nil {
			return fmt.Errorf("serve configuration: %w", err)
		}
	}
	return nil
}
