package settings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/queue-manager/internal/settings"
)

// A cluster that could describe clusters would make itself the cheapest, or cordon others.
func TestAClusterDescribesNoCluster(t *testing.T) {
	t.Parallel()
	for kind, spec := range map[string]string{
		"Cluster": `{"costPerHour": {"cpu": 1}}`, "ClusterCordon": `{"since": "2026-11-21T12:00:00Z", "by": "east"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			manifest := json.RawMessage(`{"apiVersion": "muster.dev/v1beta1", "kind": "` + kind + `", "metadata": {"name": "east"}, "spec": ` + spec + `}`)
			request := query.ConfigureRequest{Apply: []json.RawMessage{manifest}}
			if _, err := (settings.File{}).Plan(nil, "east", request, nil); err == nil || !strings.Contains(err.Error(), "only operators describe and cordon clusters") {
				t.Errorf("from a cluster: %v, want a refusal", err)
			}
			if plan, err := (settings.File{}).Plan(nil, "", request, nil); err != nil || len(plan.Written) != 1 {
				t.Errorf("from an operator: %v, %v, want it written", plan.Outcomes, err)
			}
		})
	}
}
