package stacktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// Often is how often to look at what costs little.
const Often = 20 * time.Millisecond

// Until polls a condition that no event shows. The longer that takes the less often it looks,
// down to a fifth as often: tests run beside each other, and each look takes time of all of
// them. The test fails when the condition is not met in time.
func Until(t *testing.T, every, patience time.Duration, what string, met func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for pause := every; !met(); pause = min(pause+pause/4, 5*every) {
		select {
		case <-time.After(pause):
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// Cancel asks over NATS that the workload ends.
func Cancel(t *testing.T, s *stack.Stack, id workload.ID) {
	t.Helper()
	envelope, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadCancel{Workload: id, Why: "the test asks for it"})
	if err == nil {
		err = s.Bus.Publish(t.Context(), event.WorkloadSubject("default"), envelope)
	}
	if err != nil {
		t.Fatalf("cancel workload %s: %v", id, err)
	}
}

// Workload returns the record of a workload, also while the test ends.
func Workload(t *testing.T, s *stack.Stack, id workload.ID) workload.Record {
	t.Helper()
	answer, err := s.Queries.Workloads(context.Background(), query.WorkloadsRequest{ID: id})
	if err != nil || len(answer.Workloads) != 1 {
		t.Fatalf("workload %s: %+v, %v", id, answer.Workloads, err)
	}
	return answer.Workloads[0]
}

// Nodes returns the nodes that queue-manager knows, also while the test ends.
func Nodes(t *testing.T, s *stack.Stack) []query.Node {
	t.Helper()
	answer, err := s.Queries.Nodes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return answer.Nodes
}

// NoNodeIsOverCommitted checks what holds at any time, in the ledger and in Kubernetes.
func NoNodeIsOverCommitted(t *testing.T, s *stack.Stack) {
	t.Helper()
	for _, n := range Nodes(t, s) {
		for _, name := range n.Free.Names() {
			if n.Free[name] < 0 {
				t.Errorf("node %s of cluster %s is over-committed: %s of %s free", n.Name, n.Cluster, fmt.Sprint(n.Free[name]), name)
			}
		}
	}
}
