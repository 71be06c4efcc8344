package output_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/services/internal/client/output"
)

// TestADryRunJudgesQueues: whether each would be active, and why not.
func TestADryRunJudgesQueues(t *testing.T) {
	t.Parallel()
	objects := []query.Configured{
		{Key: kueue.Key{Kind: "ResourceFlavor", Name: "f"}, Outcome: query.Created},
		{Key: kueue.Key{Kind: "ClusterQueue", Name: "a"}, Outcome: query.Created, Held: `clusterQueue "a" is inactive: because`},
		{Key: kueue.Key{Kind: "LocalQueue", Namespace: "n", Name: "b"}, Outcome: query.Unchanged},
		{Key: kueue.Key{Kind: "ClusterQueue", Name: "c"}, Outcome: query.Deleted},
	}
	for name, c := range map[string]struct {
		dryRun bool
		want   string
	}{
		"a dry run": {true, `resourceflavor.kueue.x-k8s.io/f created (dry run)
clusterqueue.kueue.x-k8s.io/a created (dry run): would not be active: clusterQueue "a" is inactive: because
localqueue.kueue.x-k8s.io/b of namespace n unchanged (dry run): would be active
clusterqueue.kueue.x-k8s.io/c deleted (dry run)
`},
		"a change": {false, `resourceflavor.kueue.x-k8s.io/f created
clusterqueue.kueue.x-k8s.io/a created
localqueue.kueue.x-k8s.io/b of namespace n unchanged
clusterqueue.kueue.x-k8s.io/c deleted
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			if err := output.Outcomes(&got, objects, c.dryRun); err != nil {
				t.Fatal(err)
			}
			if got.String() != c.want {
				t.Errorf("it tells\n%s\nwant\n%s", got.String(), c.want)
			}
		})
	}
}
