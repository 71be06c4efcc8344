package app

import (
	"testing"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/quota"
)

// FuzzQueues: whatever is in a queues file, it is refused or a policy that the
// decisions can begin with.
func FuzzQueues(f *testing.F) {
	f.Add([]byte("queues: [{name: q, namespaces: [a, b]}]\nclusterQueues: [{name: q, queueingStrategy: Backfill}]\n"))
	f.Add([]byte("queues: [{name: q, namespaces: [a], strategy: StrictFIFO, life: {backoffFirst: 1m}}]\nfairSharing: {enable: true}\n"))
	f.Add([]byte("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\n---\n" +
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: q}\nspec: {clusterQueue: a}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		queues, policy, _, err := decodeQueues(content)
		if err != nil || validateQueues(queues) != nil || policy.Validate() != nil {
			return
		}
		known := make([]book.Queue, len(queues))
		for i, q := range queues {
			known[i] = book.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy}
		}
		if _, err := quota.New(book.PolicyOf(known, policy)); err != nil {
			t.Fatalf("a policy that is valid is not taken: %v", err)
		}
	})
}
