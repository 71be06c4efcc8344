package cli

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// TestFindQueue: queues of one name are told apart by their namespace, and none of them is
// taken for the one that is meant.
func TestFindQueue(t *testing.T) {
	t.Parallel()
	queues := []query.Queue{
		{Name: "research", Namespaces: []string{"research", "shared"}, ClusterQueue: "research"},
		{Name: "user-queue", Namespaces: []string{"team-a"}, ClusterQueue: "team-a-cq"},
		{Name: "user-queue", Namespaces: []string{"team-b"}, ClusterQueue: "team-b-cq"},
	}
	for name, c := range map[string]struct {
		queue, namespace string
		want, refusal    string
		code             int
	}{
		"a name of one queue":        {queue: "research", want: "research"},
		"one of its namespaces":      {queue: "research", namespace: "shared", want: "research"},
		"a namespace":                {queue: "user-queue", namespace: "team-b", want: "team-b-cq"},
		"an ambiguous name":          {queue: "user-queue", refusal: `"user-queue" is the name of queues in namespaces team-a, team-b; choose one with --namespace`, code: exit.Usage},
		"a namespace without it":     {queue: "user-queue", namespace: "team-c", refusal: `there is no queue "user-queue" in namespace "team-c"; there is one in team-a, team-b`, code: exit.NotFound},
		"a name that no queue has":   {queue: "other", refusal: `there is no queue "other"; there are research, user-queue`, code: exit.NotFound},
		"nor in any other namespace": {queue: "other", namespace: "team-a", refusal: `there is no queue "other"; there are research, user-queue`, code: exit.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := findQueue(queues, c.queue, c.namespace)
			if c.refusal == "" && (err != nil || found.ClusterQueue != c.want) {
				t.Errorf("found %+v, %v; want the one of %s", found, err, c.want)
			}
			if c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal) || exit.Code(err) != c.code) {
				t.Errorf("found %+v, %v; want %s", found, err, c.refusal)
			}
		})
	}
}
