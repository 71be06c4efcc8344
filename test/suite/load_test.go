package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/policyfile/queuesfile"
)

// The ClusterQueues that are applied are those of the queues file.
func TestAppliedQueuesAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	file, _, err := queuesfile.Read([]byte(MixedQueues("ns", Shape{})))
	if err != nil {
		t.Fatal(err)
	}
	without, _, err := queuesfile.Read([]byte(MixedQueues("ns", Shape{Quota: true})))
	if err != nil {
		t.Fatal(err)
	}
	var applied quota.Config
	for _, manifest := range clusterQueues(nominalQuota) {
		object, err := kueue.ParseOne(manifest)
		if err != nil {
			t.Fatal(err)
		}
		if bad := object.FaultsIfNew(); len(bad) > 0 {
			t.Error(bad)
		}
		applied = kueue.Concat(applied, object.Policy)
	}
	sorted := func(queues []quota.ClusterQueue) []quota.ClusterQueue {
		for i := range queues {
			queues[i].NamespaceSelector = nil // a manifest without one selects no namespace
		}
		return slices.SortedFunc(slices.Values(queues), func(a, b quota.ClusterQueue) int { return strings.Compare(a.Name, b.Name) })
	}
	if diff := cmp.Diff(sorted(file.ClusterQueues), sorted(applied.ClusterQueues)); diff != "" {
		t.Errorf("ClusterQueues (-file +applied):\n%s", diff)
	}
	if len(without.ClusterQueues) > 0 {
		t.Errorf("a file for queues that are applied has %d of its own", len(without.ClusterQueues))
	}
}
