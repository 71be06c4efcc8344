package settings_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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
			if _, err := (settings.File{}).Plan(nil, "east", request, nil, time.Time{}); err == nil || !strings.Contains(err.Error(), "only operators describe and cordon clusters") {
				t.Errorf("from a cluster: %v, want a refusal", err)
			}
			if plan, err := (settings.File{}).Plan(nil, "", request, nil, time.Time{}); err != nil || len(plan.Written) != 1 {
				t.Errorf("from an operator: %v, %v, want it written", plan.Outcomes, err)
			}
		})
	}
}

// A cluster may offer a flavor that comes later: that is a note, and no fault.
func TestAClusterMayOfferAFlavorThatComesLater(t *testing.T) {
	t.Parallel()
	flavor := `{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "spot"}}`
	cluster := `{"apiVersion": "muster.dev/v1beta1", "kind": "Cluster", "metadata": {"name": "east"}, "spec": {"flavors": ["spot"]}}`
	for name, c := range map[string]struct {
		apply []json.RawMessage
		want  string // of the note of the last object
	}{
		"later": {[]json.RawMessage{json.RawMessage(cluster)}, `there is no ResourceFlavor "spot" yet`},
		"there": {[]json.RawMessage{json.RawMessage(flavor), json.RawMessage(cluster)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := (settings.File{}).Plan(nil, "", query.ConfigureRequest{Apply: c.apply}, nil, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(plan.Outcomes[len(plan.Outcomes)-1].Notes, "; ")
			if !strings.Contains(notes, c.want) || c.want == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, c.want)
			}
		})
	}
}
