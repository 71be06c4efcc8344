package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// fullAPI answers with as much as the HTTP API answers at most, with long names and reasons.
type fullAPI struct{ *api }

// ServeHTTP implements http.Handler.
func (f fullAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	switch path := r.URL.Path; {
	case path == "/v1/decisions":
		reply(w, fullDecisions(now))
	case path == "/v1/usage":
		reply(w, fullUsage(now))
	case path == "/v1/whatif":
		reply(w, fullWhatIf(now))
	case path == "/v1/queues":
		reply(w, fullQueues())
	case path == "/v1/dead-letters":
		reply(w, fullDeadLetters(now))
	case path == "/v1/status":
		reply(w, fullStatus(now))
	case path == "/v1/workloads/"+string(theID):
		reply(w, fullWorkload(f.record, now))
	case path == "/v1/workloads/"+string(theID)+"/manifest":
		reply(w, query.ManifestAnswer{Manifest: []byte(`{"kind": "RayJob", "spec": "` + strings.Repeat("&<>", 300_000) + `"}`)})
	case path == "/v1/workloads/"+string(theID)+"/explanation":
		var all workload.Explanation
		for i := range 1000 {
			all.Changes = append(all.Changes, workload.Change{Message: fmt.Sprint(i, longReason)})
		}
		reply(w, query.ExplainAnswer{Explanation: all})
	default:
		f.api.ServeHTTP(w, r)
	}
}

// longName is as long as the name of an object may be, and longReason has quotes, as reasons do.
var (
	longName   = strings.Repeat("long-name-", 6)
	longReason = strings.Repeat(`pod set "workers" wants <8> nvidia.com/gpu; `, 40)
)

func nameOf(i int) string { return fmt.Sprintf("%s%06d", longName, i) }

func idNumber(i int) workload.ID { return workload.ID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)) }

func fullDecisions(now time.Time) (answer query.DecisionsAnswer) {
	for i := range query.MaxDecisions {
		d := query.Decision{DecisionKey: query.DecisionKey{Epoch: 7, Number: int64(1000 - i)}, At: now, InputsInAll: 5000, StepsInAll: 5000}
		for k := range query.MaxDecisionInputs {
			d.Inputs = append(d.Inputs, query.DecisionInput{Kind: "event", Message: fmt.Sprintf("dev.muster.workload.%s.%d", longName, k), At: now})
		}
		for k := range query.MaxDecisionSteps {
			d.Steps = append(d.Steps, query.DecisionStep{
				Workload: idNumber(i*query.MaxDecisionSteps + k), Phase: workload.Queued, Attempt: 3, Cluster: longName, Reason: &workload.Reason{Kind: workload.ReasonFit, Message: longReason},
			})
		}
		answer.Decisions = append(answer.Decisions, d)
	}
	answer.Decisions[9].Steps[query.MaxDecisionSteps-1].Workload = theID
	return answer
}

func fullUsage(now time.Time) query.UsageAnswer {
	answer := query.UsageAnswer{Since: now.Add(-time.Hour), Until: now, By: []string{"queue", "namespace", "user", "day"}}
	for i := range query.MaxUsageRows {
		row := query.UsageRow{Key: []string{nameOf(i), nameOf(i), nameOf(i), "2026-03-04"}, Admissions: 100_000, Cost: 1e9}
		for k := range 8 {
			row.Resources = append(row.Resources, query.UsedResource{Resource: resource.Name(fmt.Sprintf("example.com/%s%d", longName, k)), Reserved: 1e12, Running: 1e12})
		}
		answer.Rows = append(answer.Rows, row)
	}
	return answer
}

func fullWhatIf(now time.Time) query.WhatIfAnswer {
	answer := query.WhatIfAnswer{MadeAt: now, Version: 77}
	for i := range 10_000 {
		answer.Workloads = append(answer.Workloads, query.WhatIfWorkload{ID: idNumber(i), Namespace: longName, Name: nameOf(i), Queue: longName, Before: now.Add(time.Hour), After: now.Add(2 * time.Hour)})
	}
	return answer
}

func fullQueues() (answer query.QueuesAnswer) {
	answer.Cohorts = []quota.CohortUsage{{Name: "all"}}
	var lines []quota.Line
	limit := int64(1 << 40)
	for i := range 300 {
		lines = append(lines, quota.Line{
			FlavorResource: quota.FlavorResource{Flavor: nameOf(i), Resource: "nvidia.com/gpu"}, Nominal: 1 << 40, Used: 1 << 39, Borrowed: 1 << 38, Lent: 1 << 37, Available: 1 << 36,
			BorrowingLimit: &limit, LendingLimit: &limit,
		})
	}
	for i := range 500 {
		of := nameOf(i)
		answer.ClusterQueues = append(answer.ClusterQueues, query.ClusterQueue{Name: of, Cohort: "all", Waiting: 100_000, Quota: lines[:24], Inactive: longReason})
		answer.Queues = append(answer.Queues, query.Queue{Name: of, Namespaces: []string{"team-a"}, ClusterQueue: of, Cohort: "all", Waiting: 100_000, Strategy: "StrictFIFO"})
	}
	answer.Queues[0].Name, answer.Queues[0].Quota = "research", lines
	return answer
}

func fullDeadLetters(now time.Time) httpapi.DeadLetters {
	answer := httpapi.DeadLetters{Older: 1 << 30}
	for i := range 1000 {
		answer.DeadLetters = append(answer.DeadLetters, httpapi.DeadLetter{
			Subject: "muster.submit." + longName + "." + longName, Sequence: uint64(i + 1), At: now, Stored: now, Reason: longReason, Bytes: 1 << 20,
		})
	}
	return answer
}

func fullStatus(now time.Time) query.StatusAnswer {
	answer := query.StatusAnswer{At: now, Workloads: map[workload.Phase]int{workload.Queued: 100_000}}
	for i := range 1000 {
		answer.Attention, answer.About = append(answer.Attention, longReason), append(answer.About, query.About{Workload: idNumber(i)})
		answer.Notes = append(answer.Notes, longReason)
	}
	for i := range 100 {
		answer.Clusters = append(answer.Clusters, query.ClusterStatus{
			Name: nameOf(i), State: query.ClusterCordoned, Nodes: 10_000, ReadyNodes: 9_999, Cordon: &quota.ClusterCordon{Name: nameOf(i), By: "http/olga", Why: longReason},
		})
	}
	return answer
}

// fullWorkload is the record with places on 10,000 nodes, and a long life.
func fullWorkload(r workload.Record, now time.Time) httpapi.Description {
	d := httpapi.Description{Record: r}
	reason := &workload.Reason{Kind: workload.ReasonFit, Message: longReason}
	d.Reason, d.Cluster = reason, longName
	for i := range 10_000 {
		d.Placements = append(d.Placements, workload.Placement{PodSet: longName, Node: nameOf(i), Pods: 1})
	}
	for i := range 2000 {
		d.History = append(d.History, query.HistoryEntry{At: now.Add(time.Duration(i) * time.Second), Phase: workload.Queued, Attempt: i, Reason: reason})
		d.Estimates = append(d.Estimates, query.PastEstimate{MadeAt: now, Unknown: longReason})
	}
	return d
}

// TestPagesAtTheirBounds: whatever the HTTP API answers, no page has more than a megabyte, and each
// counts what it leaves out.
func TestPagesAtTheirBounds(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, fullAPI{newAPI(10_000, 100_000)}, "olga", true)
	leftOut := map[string]string{
		"/decisions": "and 4975 workloads more", "/decisions?workload=" + string(theID): "and 4974 workloads more", "/usage": "more rows: the command line has all",
		"/whatif?workload=" + string(theID) + "&priority=7": "more differ", "/queues": "and 16 more", "/queues/research": "and 44 more", "/": "and 950 more",
		"/dead-letters": "Rows 1 to 100 of 1000.", "/workloads/" + string(theID): "1800 older entries", "/workloads/" + string(theID) + "/manifest": "first part only",
	}
	for _, path := range paths() {
		t.Run(path, func(t *testing.T) {
			status, _, content := b.get(path)
			if status != http.StatusOK || len(content) > mostBytes {
				t.Errorf("status %d, %d bytes, want %d at most", status, len(content), mostBytes)
			}
			if want := leftOut[path]; !strings.Contains(content, want) {
				t.Errorf("the page does not say %q", want)
			}
			t.Logf("%d bytes", len(content))
		})
	}
	if _, _, content := b.get("/decisions?workload=" + string(theID)); !strings.Contains(content, `class="here"`) {
		t.Error("the decision about the workload does not show its step")
	}
}
