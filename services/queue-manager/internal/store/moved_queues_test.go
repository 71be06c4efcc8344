package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// inCohorts configures queue "q" with a quota of 2 CPUs in the cohort; cohort "all"
// has one more CPU, cohort "small" has none of its own.
func (l ledger) inCohorts(t *testing.T, cohort, flavor string) {
	t.Helper()
	var policy quota.Config
	err := json.Unmarshal([]byte(`{"resourceFlavors": [{"name": "f"}, {"name": "g"}],
		"cohorts": [
			{"name": "all", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "1"}]}]}]},
			{"name": "small", "parentName": "root"}],
		"clusterQueues": [{"name": "q", "cohortName": "`+cohort+`", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
			{"name": "`+flavor+`", "resources": [{"name": "cpu", "nominalQuota": "1"}]}]}]}]}`), &policy)
	if err != nil {
		t.Fatal(err)
	}
	queues := []state.Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}}
	if err := l.SetQueues(t.Context(), l.term.Epoch, queues, policy); err != nil {
		t.Fatal(err)
	}
}

// A queue that moves to another cohort takes what its gangs use along, also beyond
// what it may use there; it may not use more then, and all is given back at the end.
func TestAMovedQueueTakesItsChargesAlong(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.inCohorts(t, "all", "f")
	first := charged(1, "first", 2, 700)
	l.commit(t, first)
	used := func(when string, want map[string][2]int64) {
		t.Helper()
		got := l.used(t)
		for scope, u := range got {
			if u[0] == 0 && want[scope] == ([2]int64{}) {
				delete(got, scope) // a cohort of which nothing is used
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: used and bound (-want +got):\n%s", when, diff)
		}
	}
	used("before", map[string][2]int64{"clusterQueue q": {1400, 2000}, "cohort all": {1400, 2000}})
	l.inCohorts(t, "small", "f")
	used("in a smaller cohort", map[string][2]int64{"clusterQueue q": {1400, 1000}, "cohort small": {1400, 1000}, "cohort root": {1400, 1000}})
	l.inCohorts(t, "small", "f")
	used("configured once more", map[string][2]int64{"clusterQueue q": {1400, 1000}, "cohort small": {1400, 1000}, "cohort root": {1400, 1000}})
	more := charged(2, "second", 1, 100)
	more.Reserved[0].Charges.Scopes = []string{"clusterQueue q", "cohort small", "cohort root"}
	more.Epoch, more.Version = l.term.Epoch, l.version(t)+1
	if _, err := l.Commit(t.Context(), more); err == nil || !strings.Contains(err.Error(), "quota") {
		t.Errorf("more than the quota: commit returned %v", err)
	}
	l.inCohorts(t, "all", "g")
	used("without the flavor", map[string][2]int64{"clusterQueue q": {1400, 1000}, "cohort all": {1400, 1000}})
	l.inCohorts(t, "", "f")
	used("in no cohort", map[string][2]int64{"clusterQueue q": {1400, 1000}})

	record := first.Added[0].Record
	record.Phase, record.Holding, record.Flavors, record.Placements = workload.Cancelled, false, nil, nil
	l.commit(t, state.Changes{Freed: []workload.ID{record.ID}, Updated: []workload.Record{record}})
	used("at the end", map[string][2]int64{"clusterQueue q": {0, 1000}})
}

// Of a stored reservation nothing else changes: neither the flavor that it is charged
// to nor its node.
func TestReservationsKeepTheirFlavors(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.inCohorts(t, "all", "f")
	l.commit(t, charged(1, "first", 2, 700))
	for _, change := range []string{`charges = jsonb_set(charges, '{flavors,cpu}', '"g"')`, `charges = NULL`, `node = 'other'`} {
		t.Run(change, func(t *testing.T) {
			tx, err := l.connect(t).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			if _, err := tx.Exec(t.Context(), `SELECT assert_leader($1)`, l.term.Epoch); err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), `UPDATE reservations SET `+change)
			if err == nil || !strings.Contains(err.Error(), "never updated") {
				t.Errorf("%s: %v, want a refusal", change, err)
			}
		})
	}
}
