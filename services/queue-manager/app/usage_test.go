package app_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// TestUsageIsReported: a report of a real queue-manager agrees with the history that it
// shows of the workload, also after a change of leader in the middle of the life.
func TestUsageIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "q", Namespaces: []string{"a"}})
	w.node("n1", 4)
	before := time.Now()
	id := w.runGang(gangOf("first", "q", 4))
	w.stop()
	w.start()
	w.cancel("q", id)
	w.command(id, event.Absent, 1)
	w.publish(event.GangSubject(cluster, id), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: id})
	w.status(event.GangStatus{Workload: id, Cluster: cluster, Attempt: 1, Gone: true, Released: true})
	w.phase(id, workload.Cancelled)

	request := query.UsageRequest{Since: before, By: []string{query.ByQueue, query.ByCluster}}
	report, err := w.queries.Usage(w.ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	history, err := w.queries.History(w.ctx, query.HistoryRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	at := map[workload.Phase]time.Time{}
	for _, entry := range history.Entries {
		if _, known := at[entry.Phase]; !known {
			at[entry.Phase] = entry.At
		}
	}
	if len(report.Rows) != 1 || strings.Join(report.Rows[0].Key, " ") != "q "+cluster || report.Rows[0].Admissions != 1 {
		t.Fatalf("report %+v, want one row of queue q with one admission", report)
	}
	for _, u := range report.Rows[0].Resources {
		if u.Resource != "nvidia.com/gpu" {
			continue
		}
		between := func(from, to workload.Phase) float64 { return 4 * at[to].Sub(at[from]).Seconds() }
		for name, c := range map[string]struct{ got, want float64 }{
			"reserved": {u.Reserved, between(workload.Admitted, workload.Cancelled)},
			"starting": {u.Starting, between(workload.Admitted, workload.Running)},
			"running":  {u.Running, between(workload.Running, workload.Cancelling)},
			"stopping": {u.Stopping, between(workload.Cancelling, workload.Cancelled)},
		} {
			t.Run(name, func(t *testing.T) {
				if diff := c.got - c.want; diff < -1e-6 || diff > 1e-6 {
					t.Errorf("%v GPU seconds, want %v", c.got, c.want)
				}
			})
		}
		return
	}
	t.Errorf("no GPUs in %+v", report.Rows[0])
}

// TestUsageCostsWhatTheFlavorsCost, unless the request has prices of its own.
func TestUsageCostsWhatTheFlavorsCost(t *testing.T) {
	t.Parallel()
	spot := quota.FlavorQuotas{Name: "spot", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: 8}}}
	w := newWorldWith(t, func(c *app.Config) {
		c.Queues = []app.Queue{{Name: "q", Namespaces: []string{"a"}}}
		c.Policy = quota.Config{
			Flavors: []quota.Flavor{{Name: "spot", Cost: quota.Cost{"nvidia.com/gpu": 3600_000}}},
			ClusterQueues: []quota.ClusterQueue{{Name: "q", QuotaCheckStrategy: quota.IgnoreUndeclared, ResourceGroups: []quota.ResourceGroup{{
				CoveredResources: []resource.Name{"nvidia.com/gpu"}, Flavors: []quota.FlavorQuotas{spot},
			}}}},
		}
	})
	w.node("n1", 4)
	w.runGang(gangOf("first", "q", 4))
	request := query.UsageRequest{Since: time.Now().Add(-time.Hour), By: []string{query.ByFlavor}, Resources: []resource.Name{"nvidia.com/gpu"}}
	for name, c := range map[string]struct {
		prices []query.Price
		factor float64
	}{
		"by the flavors":               {nil, 1},
		"by the request":               {[]query.Price{{Resource: "nvidia.com/gpu", PerHour: 7200}}, 2},
		"by the request of the flavor": {[]query.Price{{Flavor: "spot", Resource: "nvidia.com/gpu", PerHour: 10800}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			request.Prices = c.prices
			report, err := w.queries.Usage(w.ctx, request)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range report.Rows {
				if row.Key[0] != "spot" {
					continue
				}
				want := c.factor * row.Resources[0].Reserved // a GPU costs one in a second
				if row.Cost <= 0 || math.Abs(row.Cost-want) > want/1e3 {
					t.Errorf("cost %v, want %v", row.Cost, want)
				}
			}
		})
	}
}

func TestBadReportsOfUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "q", Namespaces: []string{"a"}})
	now := time.Now()
	for name, c := range map[string]struct {
		request query.UsageRequest
		want    string
	}{
		"no begin":      {query.UsageRequest{}, "want a since"},
		"backwards":     {query.UsageRequest{Since: now, Until: now.Add(-time.Hour)}, "want a since before"},
		"too long":      {query.UsageRequest{Since: now.AddDate(-2, 0, 0)}, "at most 366 days"},
		"too many keys": {query.UsageRequest{Since: now.Add(-time.Hour), By: query.UsageKeys()}, "want at most 4"},
		"another key":   {query.UsageRequest{Since: now.Add(-time.Hour), By: []string{"colour"}}, `by "colour"`},
		"a key twice":   {query.UsageRequest{Since: now.Add(-time.Hour), By: []string{"queue", "queue"}}, "twice"},
		"long by hour":  {query.UsageRequest{Since: now.AddDate(0, -2, 0), By: []string{"hour"}}, "at most 31 days"},
		"a bad price":   {query.UsageRequest{Since: now.Add(-time.Hour), Prices: []query.Price{{Resource: "cpu", PerHour: -1}}}, "price -1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.queries.Usage(w.ctx, c.request); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
