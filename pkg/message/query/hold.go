package query

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// HoldSubject is for holds of queues and cordons of clusters from services that act for operators. The right to
// publish on ConfigureSubject would let them change everything else, too.
const HoldSubject = "muster.hold"

// HoldRequest holds a queue or a ClusterQueue, cordons or drains a cluster, has it join or
// leave, reserves nodes, or ends that. The same request again changes nothing.
type HoldRequest struct {
	Queue string `json:"queue,omitempty"`
	// Namespace of the queue; empty for all of its namespaces.
	Namespace string `json:"namespace,omitempty"`
	// ClusterQueue instead of a queue.
	ClusterQueue string `json:"clusterQueue,omitempty"`
	// Cluster to be cordoned, instead of a queue; with Drain its gangs are evicted, too.
	Cluster string `json:"cluster,omitempty"`
	Drain   bool   `json:"drain,omitempty"`
	// Leave drains the cluster and forgets it and its description; with Force its gangs are
	// moved away without a confirmation that their pods are gone. Join instead describes the
	// cluster, and has it back if it had left.
	Leave bool           `json:"leave,omitempty"`
	Force bool           `json:"force,omitempty"`
	Join  *quota.Cluster `json:"join,omitempty"`
	// Reservation of nodes to be made or replaced instead; to end one its name is enough.
	Reservation *quota.Reservation `json:"reservation,omitempty"`
	// Resume ends the hold.
	Resume bool `json:"resume,omitempty"`
	// By is who asks, and Why the reason; both are shown to those who wait.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Key names the object that the hold is.
func (r HoldRequest) Key() kueue.Key {
	if r.Reservation != nil {
		return kueue.Key{Kind: kueue.Reservation, Name: r.Reservation.Name}
	}
	if r.Cluster != "" {
		return kueue.Key{Kind: kueue.ClusterCordon, Name: r.Cluster}
	}
	if r.ClusterQueue != "" {
		return kueue.Key{Kind: kueue.ClusterQueueHold, Name: r.ClusterQueue}
	}
	return kueue.Key{Kind: kueue.QueueHold, Namespace: r.Namespace, Name: r.Queue}
}

// ConfigureRequest is the change of the configuration that the request means.
func (r HoldRequest) ConfigureRequest(now time.Time) (ConfigureRequest, error) {
	if r.ClusterQueue != "" && (r.Queue != "" || r.Namespace != "") {
		return ConfigureRequest{}, fmt.Errorf("clusterQueue %.80q and queue %.80q of namespace %.80q: want one of them", r.ClusterQueue, r.Queue, r.Namespace)
	}
	if r.Join != nil {
		return r.join()
	}
	if r.Cluster != "" && (r.Queue != "" || r.Namespace != "" || r.ClusterQueue != "") || r.Cluster == "" && r.Drain {
		return ConfigureRequest{}, fmt.Errorf("cluster %.80q, drain %t, queue %.80q of namespace %.80q, clusterQueue %.80q: want a cluster, or a queue without drain",
			r.Cluster, r.Drain, r.Queue, r.Namespace, r.ClusterQueue)
	}
	if r.Reservation != nil && (r.Queue != "" || r.Namespace != "" || r.ClusterQueue != "" || r.Cluster != "") {
		return ConfigureRequest{}, fmt.Errorf("reservation %.80q, and a queue or cluster: want one of them", r.Reservation.Name)
	}
	key := r.Key()
	if r.Resume {
		return ConfigureRequest{Delete: []kueue.Key{key}}, nil
	}
	if r.Reservation != nil {
		made := *r.Reservation
		made.Since, made.By, made.Why = now.UTC().Truncate(time.Second), r.By, r.Why
		return Reserve(made)
	}
	metadata := map[string]string{"name": key.Name}
	if key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	spec := map[string]any{"since": now.UTC().Format(time.RFC3339), "by": r.By, "why": r.Why}
	if r.Drain || r.Leave {
		spec["drain"] = true
	}
	if r.Leave {
		spec["left"] = true
	}
	if r.Leave && r.Force {
		spec["forced"] = true
	}
	manifest, err := json.Marshal(map[string]any{"apiVersion": "muster.dev/v1beta1", "kind": key.Kind, "metadata": metadata, "spec": spec})
	if err != nil {
		return ConfigureRequest{}, fmt.Errorf("write the hold %s: %w", key, err)
	}
	change := ConfigureRequest{Apply: []json.RawMessage{manifest}}
	if r.Leave {
		change.Delete = []kueue.Key{{Kind: kueue.Cluster, Name: r.Cluster}}
	}
	return change, nil
}

// join describes a cluster, and ends its leaving.
func (r HoldRequest) join() (ConfigureRequest, error) {
	if r.Join.Name == "" || r.Queue != "" || r.Namespace != "" || r.ClusterQueue != "" || r.Cluster != "" || r.Reservation != nil {
		return ConfigureRequest{}, fmt.Errorf("join cluster %.80q, and a queue or another cluster: want a cluster with a name alone", r.Join.Name)
	}
	spec := map[string]any{}
	if len(r.Join.Labels) > 0 {
		spec["labels"] = r.Join.Labels
	}
	if len(r.Join.Cost) > 0 {
		spec["costPerHour"] = r.Join.Cost
	}
	if len(r.Join.Queues) > 0 {
		spec["queues"] = r.Join.Queues
	}
	if len(r.Join.Flavors) > 0 {
		spec["flavors"] = r.Join.Flavors
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "muster.dev/v1beta1", "kind": kueue.Cluster, "metadata": map[string]string{"name": r.Join.Name}, "spec": spec,
	})
	if err != nil {
		return ConfigureRequest{}, fmt.Errorf("describe cluster %q: %w", r.Join.Name, err)
	}
	change := ConfigureRequest{Apply: []json.RawMessage{manifest}}
	if r.Resume { // it had left
		change.Delete = []kueue.Key{{Kind: kueue.ClusterCordon, Name: r.Join.Name}}
	}
	return change, nil
}

// Hold holds a queue, cordons or drains a cluster, or ends that.
func (c *Client) Hold(ctx context.Context, request HoldRequest) (ConfigureAnswer, error) {
	return ask[ConfigureAnswer](ctx, c.transport, HoldSubject, request)
}

// HandleHold answers holds of queues until ctx ends.
func HandleHold(ctx context.Context, nc *nats.Conn, answer func(ctx context.Context, r HoldRequest) (ConfigureAnswer, error)) error {
	return Handle(ctx, nc, HoldSubject, answer)
}
