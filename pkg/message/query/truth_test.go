package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// A cluster learns of a workload what its dispatcher needs, and of places and requests in other
// clusters nothing.
func TestTruthOf(t *testing.T) {
	t.Parallel()
	record := func(cluster string) workload.Record {
		return workload.Record{
			Workload: workload.Workload{ID: "w", Queue: "secret", Namespace: "n", Name: "secret", Submitter: "nats/secret", PodSets: []workload.PodSet{{Name: "secret"}}},
			Phase:    workload.Running, Attempt: 2, Cluster: cluster, Holding: true, Reason: &workload.Reason{Message: "secret"},
			Placements:   []workload.Placement{{PodSet: "secret", Node: "secret", Pods: 1}},
			Provisioning: &workload.Provisioning{Number: 1, Open: true, Cluster: cluster, Name: "request", Class: workload.PlaceholderClass, Parameters: map[string]string{"secret": "x"}},
		}
	}
	ended := record("here")
	ended.Phase, ended.Holding, ended.Provisioning = workload.Succeeded, false, nil
	for name, c := range map[string]struct {
		record workload.Record
		want   workload.Record
	}{
		"it holds places here": {record("here"), workload.Record{
			Workload: workload.Workload{ID: "w", Namespace: "n"}, Phase: workload.Running, Attempt: 2, Cluster: "here", Holding: true,
			Provisioning: &workload.Provisioning{Open: true, Cluster: "here", Name: "request", Class: workload.PlaceholderClass},
		}},
		"it holds places elsewhere": {record("elsewhere"), workload.Record{Workload: workload.Workload{ID: "w"}, Phase: workload.Running, Attempt: 2}},
		"it has ended":              {ended, workload.Record{Workload: workload.Workload{ID: "w"}, Phase: workload.Succeeded, Attempt: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(&c.want, query.TruthOf("here", c.record).Record("here")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
