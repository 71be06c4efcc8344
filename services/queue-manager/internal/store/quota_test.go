package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// withQuota configures queue "q" with a quota of the given millicores, in a cohort
// that has another 1000.
func (l ledger) withQuota(t *testing.T, cpus string) {
	t.Helper()
	var policy quota.Config
	err := json.Unmarshal([]byte(`{"resourceFlavors": [{"name": "f"}],
		"cohorts": [{"name": "all", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "1"}]}]}]}],
		"clusterQueues": [{"name": "q", "cohortName": "all", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
			{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "`+cpus+`"}]}]}]}]}`), &policy)
	if err != nil {
		t.Fatal(err)
	}
	queues := []state.Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}}
	if err := l.SetQueues(t.Context(), l.term.Epoch, queues, policy); err != nil {
		t.Fatal(err)
	}
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policy, stored.Policy); diff != "" {
		t.Fatalf("the stored policy differs (-given +stored):\n%s", diff)
	}
}

// charged is an admission of a gang that is charged to the quota of queue "q".
func charged(order int64, name string, pods int, cpus int64) state.Changes {
	changes := admitted(order, name, pods, pods, cpus)
	changes.Added[0].Flavors = []workload.PodSetFlavors{{PodSet: changes.Reserved[0].PodSet, Flavors: map[resource.Name]string{"cpu": "f"}}}
	for i := range changes.Reserved {
		changes.Reserved[i].Charges = &state.Charges{Scopes: []string{"clusterQueue q", "cohort all"}, Flavors: map[resource.Name]string{"cpu": "f"}}
	}
	return changes
}

// used returns what is used of flavor "f", and its bound, by scope.
func (l ledger) used(t *testing.T) map[string][2]int64 {
	t.Helper()
	rows, err := l.connect(t).Query(t.Context(), `SELECT scope, used, bound FROM quota_usage WHERE flavor = 'f'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	usage := map[string][2]int64{}
	for rows.Next() {
		var scope string
		var used, bound int64
		if err := rows.Scan(&scope, &used, &bound); err != nil {
			t.Fatal(err)
		}
		usage[scope] = [2]int64{used, bound}
	}
	return usage
}

// The database counts what is used of each quota, and refuses what no decision
// may do: to use more than the quota, or of one that there is not.
func TestOverUseIsRefused(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.withQuota(t, "1")
	first := charged(1, "first", 2, 700)
	l.commit(t, first)
	if diff := cmp.Diff(map[string][2]int64{"clusterQueue q": {1400, 2000}, "cohort all": {1400, 2000}}, l.used(t)); diff != "" {
		t.Errorf("used and bound (-want +got):\n%s", diff)
	}
	stored, err := l.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Added[0].Flavors, stored.Workloads[0].Flavors); diff != "" {
		t.Errorf("the flavors that were stored (-want +got):\n%s", diff)
	}
	refused := func(what string, changes state.Changes) {
		t.Helper()
		changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
		if _, err := l.Commit(t.Context(), changes); err == nil || !strings.Contains(err.Error(), "quota") {
			t.Errorf("%s: commit returned %v", what, err)
		}
	}
	refused("more than the quota", charged(2, "second", 1, 601))
	unknown := charged(3, "third", 1, 100)
	unknown.Reserved[0].Charges.Flavors["cpu"] = "other"
	refused("quota that does not exist", unknown)

	l.withQuota(t, "0") // quota is taken away: what runs stays
	if got := l.used(t)["clusterQueue q"]; got != [2]int64{1400, 1000} {
		t.Errorf("with less quota used and bound are %v", got)
	}
	refused("growth beyond quota that was taken away", charged(4, "fourth", 1, 100))

	record := first.Added[0].Record
	record.Phase, record.Holding, record.Flavors, record.Placements = workload.Cancelled, false, nil, nil
	l.commit(t, state.Changes{Freed: []workload.ID{record.ID}, Updated: []workload.Record{record}})
	if got := l.used(t)["cohort all"]; got != [2]int64{0, 1000} {
		t.Errorf("at the end used and bound are %v", got)
	}
}
