package quota_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// A check is of use only with a ProvisioningRequestConfig that exists; Kueue's cases of wrong
// parameters each make the queue inactive, with the reason.
func TestWrongParametersOfACheckMakeAQueueInactive(t *testing.T) {
	t.Parallel()
	of := func(group, kind, name string) *quota.CheckParameters {
		return &quota.CheckParameters{APIGroup: group, Kind: kind, Name: name}
	}
	for name, c := range map[string]struct {
		parameters *quota.CheckParameters
		want       string // empty: the queue is active
	}{
		"right":            {of("kueue.x-k8s.io", "ProvisioningRequestConfig", "config"), ""},
		"none":             {nil, `AdmissionCheck "nodes" has no parameters`},
		"another group":    {of("example.com", "ProvisioningRequestConfig", "config"), `has parameters of example.com, kind "ProvisioningRequestConfig"; want kueue.x-k8s.io`},
		"another kind":     {of("kueue.x-k8s.io", "MultiKueueConfig", "config"), `kind "MultiKueueConfig"; want kueue.x-k8s.io, kind ProvisioningRequestConfig`},
		"no configuration": {of("kueue.x-k8s.io", "ProvisioningRequestConfig", "other"), `ProvisioningRequestConfig "other" of AdmissionCheck "nodes" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := quota.Config{
				ClusterQueues:       []quota.ClusterQueue{{Name: "q", AdmissionChecks: []string{"nodes"}}},
				AdmissionChecks:     []quota.AdmissionCheck{{Name: "nodes", ControllerName: quota.ProvisioningController, Parameters: c.parameters}},
				ProvisioningConfigs: []quota.ProvisioningConfig{{Name: "config", Class: "class"}},
			}
			if why := config.Inactive()["q"]; !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
				t.Errorf("the queue is inactive because %q, want %q", why, c.want)
			}
		})
	}
}

// Without a retryStrategy Kueue's numbers count: three repetitions, after a minute that
// doubles up to half an hour.
func TestRequestsAreRepeatedAsInKueueByDefault(t *testing.T) {
	t.Parallel()
	config := quota.ProvisioningConfig{}
	if got := config.Limit(); got != 3 {
		t.Errorf("a request is repeated %d times, want 3", got)
	}
	for failed, want := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 5: 16 * time.Minute, 6: 30 * time.Minute, 1000: 30 * time.Minute} {
		t.Run(fmt.Sprintf("%d failures", failed), func(t *testing.T) {
			if got := config.Backoff(failed); got != want {
				t.Errorf("after %d failures the wait is %s, want %s", failed, got, want)
			}
		})
	}
}

// A gang has one request, so two checks that ask for nodes for one flavor make a queue inactive.
func TestTwoChecksThatAskForNodesMakeAQueueInactive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  []string
		on   []quota.FlavoredCheck
		want string // empty: the queue is active
	}{
		"both for all":     {[]string{"one", "two"}, nil, `AdmissionChecks "one" and "two" both ask for nodes for all flavors`},
		"both for one":     {nil, []quota.FlavoredCheck{{Name: "one", OnFlavors: []string{"a", "b"}}, {Name: "two", OnFlavors: []string{"c", "b"}}}, `for flavor "b"; Muster makes one request for a gang: leave one of them`},
		"disjoint":         {nil, []quota.FlavoredCheck{{Name: "one", OnFlavors: []string{"a"}}, {Name: "two", OnFlavors: []string{"b"}}}, ""},
		"one for all":      {nil, []quota.FlavoredCheck{{Name: "one"}, {Name: "two", OnFlavors: []string{"b"}}}, `for flavor "b"`},
		"the other one":    {nil, []quota.FlavoredCheck{{Name: "one", OnFlavors: []string{"a"}}, {Name: "two"}}, `for flavor "a"`},
		"one by message":   {[]string{"one", "asked"}, nil, ""},
		"one and the same": {[]string{"one"}, []quota.FlavoredCheck{{Name: "one", OnFlavors: []string{"a"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := quota.Config{
				ClusterQueues:       []quota.ClusterQueue{{Name: "q", AdmissionChecks: c.all, ChecksStrategy: &quota.ChecksStrategy{AdmissionChecks: c.on}}},
				AdmissionChecks:     []quota.AdmissionCheck{{Name: "asked", ControllerName: "example.com/budget"}},
				ProvisioningConfigs: []quota.ProvisioningConfig{{Name: "config", Class: "class"}},
			}
			for _, check := range []string{"one", "two"} {
				config.AdmissionChecks = append(config.AdmissionChecks, quota.AdmissionCheck{
					Name: check, ControllerName: quota.ProvisioningController,
					Parameters: &quota.CheckParameters{APIGroup: "kueue.x-k8s.io", Kind: "ProvisioningRequestConfig", Name: "config"},
				})
			}
			if why := config.Inactive()["q"]; !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
				t.Errorf("the queue is inactive because %q, want %q", why, c.want)
			}
		})
	}
}
