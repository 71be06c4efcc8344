package quota_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Muster is the only reader of the parameters of placeholder pods, so it refuses what it does not
// know.
func TestParametersOfPlaceholdersAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class, parameter, value, want string
	}{
		"a deadline":             {workload.PlaceholderClass, "deadlineSeconds", "900", ""},
		"a name of the provider": {workload.PlaceholderClass, "maxRunDurationSeconds", "60", "parameters.maxRunDurationSeconds: is no parameter of the class placeholder-pods.muster.dev; it has deadlineSeconds only"},
		"no number":              {workload.PlaceholderClass, "deadlineSeconds", "15m", `parameters.deadlineSeconds: "15m": want a number of seconds from 1 to 86400`},
		"none":                   {workload.PlaceholderClass, "deadlineSeconds", "0", "want a number of seconds from 1"},
		"more than a day":        {workload.PlaceholderClass, "deadlineSeconds", "86401", "want a number of seconds from 1"},
		"of another class":       {"queued-provisioning.gke.io", "maxRunDurationSeconds", "60", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := quota.New(quota.Config{ProvisioningConfigs: []quota.ProvisioningConfig{{Name: "config", Class: c.class, Parameters: map[string]string{c.parameter: c.value}}}})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}

// A podSetMergePolicy is one of Kueue's. Placeholder pods share nothing.
func TestPoliciesOfMergingPodSetsAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ class, policy, want string }{
		"none":                {"queued-provisioning.gke.io", "", ""},
		"equal templates":     {"queued-provisioning.gke.io", workload.IdenticalPodTemplates, ""},
		"equal needs":         {"queued-provisioning.gke.io", workload.IdenticalScheduling, ""},
		"another one":         {"queued-provisioning.gke.io", "All", `podSetMergePolicy: "All": want IdenticalPodTemplates or IdenticalWorkloadSchedulingRequirements`},
		"of placeholder pods": {workload.PlaceholderClass, workload.IdenticalPodTemplates, "podSetMergePolicy: does nothing with the class placeholder-pods.muster.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := quota.New(quota.Config{ProvisioningConfigs: []quota.ProvisioningConfig{{Name: "config", Class: c.class, MergePolicy: c.policy}}})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
}
