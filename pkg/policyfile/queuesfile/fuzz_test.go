package queuesfile_test

import (
	"errors"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/state"
)

// FuzzRead: whatever is in a queues file, it is refused or a policy that the
// decisions can begin with.
func FuzzRead(f *testing.F) {
	f.Add([]byte("queues: [{name: q, namespaces: [a, b]}]\nclusterQueues: [{name: q, queueingStrategy: Backfill}]\n"))
	f.Add([]byte("queues: [{name: q, namespaces: [a], strategy: StrictFIFO, life: {backoffFirst: 1m}}]\nfairSharing: {enable: true}\n"))
	f.Add([]byte("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\n---\n" +
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: q}\nspec: {clusterQueue: a}\n"))
	for _, hostile := range []string{"1e99999999", "'1e-99999999'", "-1", "9e18", "[1]"} {
		f.Add([]byte("queues: [{name: q, namespaces: [a]}]\nclusterQueues: [{name: q, resourceGroups: [{coveredResources: [memory], flavors: [{name: default, resources: [{name: memory, nominalQuota: " + hostile + "}]}]}]}]\n"))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, _, err := queuesfile.Read(content)
		if err != nil {
			var faults fault.List
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error has no faults: %v", err)
			}
			return
		}
		known := make([]state.Queue, len(file.Queues))
		for i, q := range file.Queues {
			known[i] = state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy}
		}
		if _, err := quota.New(state.PolicyOf(known, file.Config)); err != nil {
			t.Fatalf("a policy that is valid is not taken: %v", err)
		}
	})
}
