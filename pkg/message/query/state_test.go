package query_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
)

// A cluster is ready only if its watcher is known to report.
func TestTheStateOfACluster(t *testing.T) {
	t.Parallel()
	now, silence := time.Unix(1e9, 0), time.Minute
	for name, c := range map[string]struct {
		status query.ClusterStatus
		want   string
	}{
		"it reports":                        {query.ClusterStatus{Nodes: 1, WatcherHeard: now}, query.ClusterReady},
		"it does not":                       {query.ClusterStatus{Nodes: 1, WatcherHeard: now.Add(-silence)}, query.ClusterSilent},
		"it never did":                      {query.ClusterStatus{Nodes: 1}, query.ClusterSilent},
		"NATS does not answer":              {query.ClusterStatus{Nodes: 1, Silent: "no answer within 2s"}, query.ClusterUnknown},
		"only of its dispatcher is unknown": {query.ClusterStatus{Nodes: 1, Silent: "no answer within 2s", WatcherHeard: now}, query.ClusterReady},
		"its gangs have failed over":        {query.ClusterStatus{Nodes: 1, WatcherHeard: now, FailedOver: now.Add(-silence)}, query.ClusterReturning},
		"they have, and it is not back":     {query.ClusterStatus{Nodes: 1, WatcherHeard: now.Add(-silence), FailedOver: now}, query.ClusterSilent},
		"it has no nodes":                   {query.ClusterStatus{Silent: "no answer within 2s"}, query.ClusterEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.status.StateAt(now, silence); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}
