package quota_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Labels and details of podSetUpdates are within Kueue's bounds. Placeholder pods have none.
func TestPodSetUpdatesAreChecked(t *testing.T) {
	t.Parallel()
	const class = "queued-provisioning.gke.io"
	one := quota.NodeSelectorUpdate{Key: "autoscaling.gke.io/provisioning-request", Detail: "ResizeRequestName"}
	for name, c := range map[string]struct {
		class  string
		labels []quota.NodeSelectorUpdate
		want   string
	}{
		"a label":             {class, []quota.NodeSelectorUpdate{one}, ""},
		"none":                {class, nil, ""},
		"no key":              {class, []quota.NodeSelectorUpdate{{Detail: "d"}}, `podSetUpdates.nodeSelector[0].key: "": want the key of a label`},
		"no detail":           {class, []quota.NodeSelectorUpdate{{Key: "k"}}, "nodeSelector[0].valueFromProvisioningClassDetail: \"\": want the name of a detail"},
		"twice":               {class, []quota.NodeSelectorUpdate{one, one}, "nodeSelector[1].key: \"autoscaling.gke.io/provisioning-request\" is there twice"},
		"more than eight":     {class, make([]quota.NodeSelectorUpdate, 9), "has 9 labels; want at most 8"},
		"of placeholder pods": {workload.PlaceholderClass, []quota.NodeSelectorUpdate{one}, "podSetUpdates: does nothing with the class placeholder-pods.muster.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := quota.New(quota.Config{ProvisioningConfigs: []quota.ProvisioningConfig{{Name: "config", Class: c.class, Updates: &quota.PodSetUpdates{NodeSelector: c.labels}}}})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}
