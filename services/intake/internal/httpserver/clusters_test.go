package httpserver

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

// TestAClusterJoinsAndLeaves: the parameters become the description of the cluster, and an
// order that makes no sense is refused before queue-manager is asked.
func TestAClusterJoinsAndLeaves(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, path string
		status       int
		want         []query.HoldRequest
	}{
		{http.MethodPut, "/v1/clusters/east?label=tier=spot,zone=a&cost=nvidia.com/gpu=2.5&queue=a,b&flavor=spot,reserved", http.StatusOK, []query.HoldRequest{{By: "http/olga", Join: &quota.Cluster{
			Name: "east", Labels: map[string]string{"tier": "spot", "zone": "a"}, Cost: quota.Cost{"nvidia.com/gpu": 2500}, Queues: []string{"a", "b"}, Flavors: []string{"spot", "reserved"},
		}}}},
		{http.MethodPut, "/v1/clusters/west?label=tier=spot&label=zone=a&cost=cpu=1&cost=memory=2&queue=a&queue=b,c", http.StatusNotFound, []query.HoldRequest{{By: "http/olga", Join: &quota.Cluster{
			Name: "west", Labels: map[string]string{"tier": "spot", "zone": "a"}, Cost: quota.Cost{"cpu": 1000, "memory": 2000}, Queues: []string{"a", "b", "c"},
		}}}}, // the parameters are repeated; this world never knows the cluster
		{http.MethodPut, "/v1/clusters/gone", http.StatusOK, []query.HoldRequest{{By: "http/olga", Join: &quota.Cluster{Name: "gone"}, Resume: true}}},
		{http.MethodPut, "/v1/clusters/gone/cordon", http.StatusConflict, nil},
		{http.MethodPut, "/v1/clusters/gone/cordon?drain=true", http.StatusConflict, nil},
		{http.MethodDelete, "/v1/clusters/gone/cordon", http.StatusConflict, nil},
		{http.MethodPut, "/v1/clusters/east?label=tier", http.StatusBadRequest, nil},
		{http.MethodPut, "/v1/clusters/east?cost=cpu", http.StatusBadRequest, nil},
		{http.MethodPut, "/v1/clusters/east?cost=cpu=much", http.StatusBadRequest, nil},
		{http.MethodDelete, "/v1/clusters/east?why=sold", http.StatusOK, []query.HoldRequest{{By: "http/olga", Cluster: "east", Leave: true, Why: "sold"}}},
		{http.MethodDelete, "/v1/clusters/east?force=true&why=burnt", http.StatusOK, []query.HoldRequest{{By: "http/olga", Cluster: "east", Leave: true, Force: true, Why: "burnt"}}},
		{http.MethodDelete, "/v1/clusters/east?force=true", http.StatusBadRequest, nil},
		{http.MethodDelete, "/v1/clusters/east?force=maybe", http.StatusBadRequest, nil},
		{http.MethodDelete, "/v1/clusters/west", http.StatusNotFound, nil},
		{http.MethodDelete, "/v1/clusters/busy", http.StatusConflict, nil},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			w := newWorld(t, DefaultLimits())
			answer, body := w.ask(t, "olga", test.method, test.path, "")
			if answer.StatusCode != test.status {
				t.Errorf("status %d %s, want %d", answer.StatusCode, body, test.status)
			}
			if diff := cmp.Diff(test.want, w.holds); diff != "" {
				t.Errorf("it asks for (-want +got):\n%s", diff)
			}
		})
	}
}
