package gang_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/services/dispatcher/internal/gang"
)

func amounts(of ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		list[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return list
}

// quota charges the workers only.
func quota(name string, left, charged corev1.ResourceList) gang.Quota {
	return gang.Quota{Name: name, Left: left, Charged: map[string]corev1.ResourceList{"workers": charged}}
}

// TestShort: every quota has room for all pods that are missing, beside what others have
// claimed.
func TestShort(t *testing.T) {
	t.Parallel()
	workers := []gang.Missing{{Like: pod("w1", "workers"), Pods: 3}}
	both := []gang.Missing{{Like: pod("head", "headgroup"), Pods: 1}, workers[0]}
	large := quota("large", amounts("pods", "100", "requests.cpu", "1k"), amounts("pods", "1", "requests.cpu", "500m"))
	for name, c := range map[string]struct {
		quotas  []gang.Quota
		missing []gang.Missing
		others  []gang.Claim
		want    string // empty: there is room
	}{
		"no quota":                  {missing: workers},
		"room for all":              {[]gang.Quota{large}, workers, nil, ""},
		"exactly enough":            {[]gang.Quota{quota("q", amounts("requests.cpu", "1500m"), amounts("requests.cpu", "500m"))}, workers, nil, ""},
		"a little too little":       {[]gang.Quota{quota("q", amounts("requests.cpu", "1499m"), amounts("requests.cpu", "500m"))}, workers, nil, `ResourceQuota q has no room for 3 pods of "workers" that do not exist yet: they need 1500m of requests.cpu, and 1499m is left;`},
		"the second quota is short": {[]gang.Quota{large, quota("small", amounts("pods", "2"), amounts("pods", "1"))}, both, nil, `ResourceQuota small has no room for 1 pod of "headgroup" and 3 pods of "workers" that`},
		"used beyond its limit":     {[]gang.Quota{quota("q", amounts("pods", "-1"), amounts("pods", "1"))}, workers, nil, "and -1 is left"},
		"others have claimed it":    {[]gang.Quota{quota("q", amounts("pods", "4"), amounts("pods", "1"))}, workers, []gang.Claim{{"q": amounts("pods", "1")}, {"q": amounts("pods", "1")}, {"other": amounts("pods", "9")}}, "and 4 is left, of which other gangs that are starting need 2;"},
		"a set that is not charged": {[]gang.Quota{quota("q", amounts("pods", "0"), amounts("pods", "1"))}, both[:1], nil, ""},
		"an amount without a limit": {[]gang.Quota{quota("q", amounts("pods", "5"), amounts("memory", "1Ti"))}, workers, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := gang.Short(c.quotas, c.missing, c.others); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("short is %q, want %q", got, c.want)
			}
		})
	}
	if got := large.Left["requests.cpu"]; got.Cmp(resource.MustParse("1k")) != 0 {
		t.Errorf("afterwards %s is left of a quota that had 1k", got.String())
	}
}

// TestClaims: what missing pods will use is summed up by quota.
func TestClaims(t *testing.T) {
	t.Parallel()
	claim := gang.ClaimOf([]gang.Quota{quota("q", nil, amounts("pods", "1", "memory", "2Gi"))}, []gang.Missing{{Like: pod("w1", "workers"), Pods: 3}})
	for name, want := range amounts("pods", "3", "memory", "6Gi") {
		if got := claim["q"][name]; got.Cmp(want) != 0 {
			t.Errorf("of %s %s is claimed, want %s", name, got.String(), want.String())
		}
	}
}
