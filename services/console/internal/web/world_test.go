package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const gpu resource.Name = "nvidia.com/gpu"

// theID is the workload that the HTTP API of these tests describes.
const theID workload.ID = "8f6ccd2c-8fbe-5623-bab5-2d94a6d7f8cc"

// api stands in for the HTTP API: the token "olga" is of an operator, "alice" of a tenant.
type api struct {
	mu       sync.Mutex
	queues   query.QueuesAnswer
	nodes    query.NodesAnswer
	reserved []quota.Reservation
	record   workload.Record
	cost     *workload.EvictionCost // of its eviction, once it has started
	waiting  int                    // workloads that wait
	changes  []string
	revoked  bool
	reports  []url.Values
	listed   []url.Values // what lists of workloads were asked with
	tried    []query.WhatIfRequest
	late     chan struct{} // unless nil, the nodes are answered when it is closed
	// lateActivity is the same for what happened over time.
	lateActivity chan struct{}
	// lateReason is the same for why a workload waits.
	lateReason chan struct{}
	// lateUsage is the same for usage, and lateChange for changes; arrived gets a value for each of
	// these requests that waits.
	lateUsage, lateChange, arrived chan struct{}
}

// patience is that of the console: nothing is left out of a page, unless it is to be late.
func (a *api) patience() time.Duration {
	if a.late != nil || a.lateActivity != nil || a.lateReason != nil {
		return 0
	}
	return time.Minute
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.late != nil && r.URL.Path == "/v1/nodes" {
		<-a.late
	}
	if a.lateActivity != nil && r.URL.Path == "/v1/activity" {
		<-a.lateActivity
	}
	if a.lateReason != nil && strings.HasSuffix(r.URL.Path, "/explanation") {
		select {
		case <-a.lateReason:
		case <-r.Context().Done():
		}
	}
	if a.lateUsage != nil && r.URL.Path == "/v1/usage" {
		a.wait(r, a.lateUsage)
	}
	if a.lateChange != nil && r.Method != http.MethodGet {
		a.wait(r, a.lateChange)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if who != "olga" && who != "alice" || a.revoked {
		problem(w, http.StatusUnauthorized, "unknown caller")
		return
	}
	operators := strings.HasPrefix(r.URL.Path, "/v1/nodes") || r.URL.Path == "/v1/decisions" || r.URL.Path == "/v1/dead-letters" || strings.HasPrefix(r.URL.Path, "/v1/reservations") || strings.HasPrefix(r.URL.Path, "/v1/status") || strings.HasPrefix(r.URL.Path, "/v1/clusters") || strings.HasSuffix(r.URL.Path, "/priority")
	switch {
	case operators && who != "olga":
		problem(w, http.StatusForbidden, "no operator")
	case r.URL.Path == "/v1/whatif":
		a.whatIf(w, r)
	case r.Method != http.MethodGet:
		a.changes = append(a.changes, who+" "+r.Method+" "+r.URL.RequestURI())
		reply(w, struct{}{})
	case r.URL.Path == "/v1/caller":
		reply(w, httpapi.Caller{Name: who, Operator: who == "olga"})
	case r.URL.Path == "/v1/queues":
		reply(w, a.queues)
	case r.URL.Path == "/v1/nodes":
		reply(w, a.selected(r.URL.Query()))
	case r.URL.Path == "/v1/reservations":
		reply(w, httpapi.Reservations{Reservations: a.reserved})
	case r.URL.Path == "/v1/status":
		reply(w, query.StatusAnswer{At: time.Now(), Attention: needed(), About: []query.About{{}, {Workload: theID}, {Cluster: "east"}, {DeadLetters: true}}, Workloads: map[workload.Phase]int{workload.Queued: a.waiting}, Clusters: clusters()})
	case r.URL.Path == "/v1/usage":
		a.reports = append(a.reports, r.URL.Query())
		reply(w, query.UsageAnswer{Since: time.Now().Add(-time.Hour), Until: time.Now(), By: []string{"queue"}, Rows: []query.UsageRow{{
			Key: []string{"research"}, Admissions: 3, Resources: []query.UsedResource{{Resource: gpu, Reserved: 3600 * 12.5, Running: 3600 * 12.5}},
		}}})
	case r.URL.Path == "/v1/activity":
		reply(w, activity(r.URL.Query()))
	case r.URL.Path == "/v1/decisions":
		reply(w, decisions(a.record.Times.Submitted))
	case r.URL.Path == "/v1/dead-letters":
		reply(w, deadLetters())
	case r.URL.Path == "/v1/workloads":
		reply(w, a.page(r.URL.Query()))
	case r.URL.Path == "/v1/workloads/"+string(theID):
		reply(w, httpapi.Description{Record: a.record, History: []query.HistoryEntry{{At: a.record.Times.Submitted, Phase: workload.Queued, Attempt: 1, Reason: a.record.Reason}},
			Estimates: []query.PastEstimate{{MadeAt: a.record.Times.Submitted, Unknown: "a workload holds places, and its end is unknown"}}})
	case r.URL.Path == "/v1/workloads/"+string(theID)+"/manifest":
		reply(w, query.ManifestAnswer{Manifest: json.RawMessage(`{"kind": "RayJob", "spec": {"entrypoint": "python <b>train.py --token (masked)"}}`), Masked: 1})
	case r.URL.Path == "/v1/workloads/"+string(theID)+"/explanation":
		explained := workload.Explanation{Changes: []workload.Change{{Message: "2 fewer pods of workers"}}}
		if a.record.Phase.Started() {
			explained = workload.Explanation{Eviction: a.cost}
		}
		reply(w, query.ExplainAnswer{Explanation: explained})
	default:
		problem(w, http.StatusNotFound, "there is no such thing")
	}
}

// wait reports that a request has arrived, and waits until it may be answered.
func (a *api) wait(r *http.Request, late <-chan struct{}) {
	select {
	case a.arrived <- struct{}{}:
	case <-late:
	case <-r.Context().Done():
	}
	select {
	case <-late:
	case <-r.Context().Done():
	}
}

// whatIf answers that the workload would start sooner; a drain is refused.
func (a *api) whatIf(w http.ResponseWriter, r *http.Request) {
	var request query.WhatIfRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Drain) > 0 {
		problem(w, http.StatusUnprocessableEntity, "there is no such node")
		return
	}
	a.tried = append(a.tried, request)
	now := time.Now()
	reply(w, query.WhatIfAnswer{MadeAt: now, Version: 77, Same: 4, Workloads: []query.WhatIfWorkload{
		{ID: theID, Namespace: "team-a", Name: "train", Queue: "research", Before: now.Add(3 * time.Hour), After: now.Add(time.Hour)},
	}})
}

// needed are lines about a part, a workload, a cluster, dead letters, and one more than have a page.
func needed() []string {
	return []string{"JetStream is full", "workload team-a/train is stuck", "cluster east is silent", "3 messages could not be processed", "a budget is used up"}
}

// deadLetters are more than a page has, and more that are older.
func deadLetters() httpapi.DeadLetters {
	answer := httpapi.DeadLetters{Older: 7}
	at := time.Now().Add(-time.Hour)
	for i := range 150 {
		answer.DeadLetters = append(answer.DeadLetters, httpapi.DeadLetter{
			Subject: "muster.submit.research.alice", Sequence: uint64(i + 1), At: at, Stored: at.Add(-time.Second), Reason: `no manifest: data is "..." <b>`, Bytes: 512,
		})
	}
	return answer
}

// clusters are one that is ready, and others that are cordoned, drained and gone.
func clusters() []query.ClusterStatus {
	all := []query.ClusterStatus{{Name: "east", State: query.ClusterReady, Nodes: 3, ReadyNodes: 2, Flavors: []string{"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "<f9>"}}}
	for _, c := range []quota.ClusterCordon{{Name: "gone", Drain: true, Left: true}, {Name: "south", Drain: true}, {Name: "west", By: "http/olga", Why: "cables"}} {
		all = append(all, query.ClusterStatus{Name: c.Name, State: query.ClusterCordoned, Cordon: &c})
	}
	all[1].Flavors = []string{"spot", "reserved<b>"}
	return all
}

// activity has the most steps that may be asked for.
func activity(values url.Values) query.ActivityAnswer {
	var answer query.ActivityAnswer
	_, _ = fmt.Sscan(values.Get("step"), &answer.StepSeconds)
	answer.Since, _ = time.Parse(time.RFC3339, values.Get("since"))
	for i := range 60 {
		answer.Steps = append(answer.Steps, query.ActivityStep{At: answer.Since.Add(time.Duration(i*answer.StepSeconds) * time.Second), Waiting: i * 20, Admitted: i % 3, WaitP50: float64(i)})
	}
	return answer
}

// decisions are two, of which one is about the workload.
func decisions(at time.Time) query.DecisionsAnswer {
	key := query.DecisionKey{Epoch: 7, Number: 12}
	return query.DecisionsAnswer{Next: &key, Decisions: []query.Decision{
		{
			DecisionKey: query.DecisionKey{Epoch: 7, Number: 13}, Version: 90, At: at, InputsInAll: 2, StepsInAll: 1,
			Inputs: []query.DecisionInput{{Kind: "event", Message: "dev.muster.workload.submitted.v1", At: at}, {Kind: "decide", At: at}},
			Steps:  []query.DecisionStep{{Workload: theID, Phase: workload.Queued, Attempt: 1, Reason: &workload.Reason{Kind: workload.ReasonFit, Message: "4 pods do not fit"}}},
		},
		{DecisionKey: key, Version: 89, At: at, Bytes: 2 << 20, TooLarge: true},
	}}
}

// selected is what intake answers for the parameters that the console uses: the node of a name, or
// as many as were asked for from a node on. The first node is held by the workload.
func (a *api) selected(values url.Values) query.NodesAnswer {
	answer := query.NodesAnswer{Selected: true, InAll: len(a.nodes.Nodes)}
	limit := len(a.nodes.Nodes)
	_, _ = fmt.Sscan(values.Get("limit"), &limit)
	_, from, _ := strings.Cut(values.Get("from"), "/")
	for _, n := range a.nodes.Nodes {
		if name := values.Get("name"); name != "" && n.Name != name || values.Get("state") == query.NodeBroken && n.Ready || !strings.HasPrefix(n.Name, values.Get("prefix")) {
			continue
		}
		if answer.Count++; n.Name < from {
			continue
		}
		if len(answer.Nodes) == limit {
			answer.Next = cmp.Or(answer.Next, query.NodeName{Cluster: n.Cluster, Name: n.Name})
			continue
		}
		if values.Get("holders") == "true" && n.Name == "gpu-00001" {
			until := workload.End{At: time.Now().Add(150 * time.Minute), By: workload.EndDeclared}
			n.Until, n.HoldersInAll = &until, 1
			n.Holders = []query.Holder{{ID: theID, Namespace: "team-a", Name: "train", Queue: "research", Phase: workload.Running, PodSet: "workers", Pods: 4, Since: time.Now(), Until: until}}
		}
		answer.Nodes = append(answer.Nodes, n)
	}
	return answer
}

// page is what intake answers: as many as were asked for, with a next as long as there are more.
// The last submitted is the first of its queue.
func (a *api) page(values url.Values) httpapi.WorkloadsPage {
	a.listed = append(a.listed, values)
	limit := query.MaxPage
	_, _ = fmt.Sscan(values.Get("limit"), &limit)
	var page httpapi.WorkloadsPage
	if phase := values.Get("phase"); phase != "" && phase != "queued" {
		return page
	}
	for i := range min(limit, a.waiting) {
		r := a.record
		of := i // by submission
		if values.Get("order") == query.OrderPosition {
			of = a.waiting - 1 - i
		}
		r.ID, r.Name, r.Position = workload.ID(fmt.Sprintf("00000000-0000-0000-0000-%012d", of)), fmt.Sprintf("train-with-a-long-name-%06d", of), int32(a.waiting-of)
		r.SetEstimate(&workload.Estimate{MadeAt: time.Now(), P50: time.Now().Add(time.Duration(r.Position)*time.Hour + time.Minute), P90: time.Now().Add(100 * time.Hour)})
		page.Workloads = append(page.Workloads, r)
	}
	if a.waiting > limit {
		page.Next = page.Workloads[limit-1].ID
	}
	return page
}

func problem(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(httpapi.Problem{Error: text})
}

func reply(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }

func (a *api) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *api) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.changes...)
}

// newAPI has one queue with a workload that waits, and as many nodes of eight GPUs.
func newAPI(nodes, waiting int) *api {
	a := &api{waiting: waiting, record: workload.Record{
		Workload: workload.Workload{ID: theID, Queue: "research", Namespace: "team-a", Kind: "RayJob", Name: "<b>train</b>", PodSets: []workload.PodSet{{
			Name: "workers", Role: workload.RoleWorker, Count: 4, Template: workload.Template{Requests: resource.List{gpu: 8}},
		}}},
		Phase: workload.Queued, Attempt: 1, Position: 1, Times: workload.Times{Submitted: time.Now().Add(-time.Hour)},
		Reason: &workload.Reason{Kind: workload.ReasonFit, Message: strings.Repeat("4 of 4 pods of pod set \"workers\" do not fit. ", 20)},
	}}
	a.queues.Queues = []query.Queue{{Name: "research", Namespaces: []string{"team-a"}, ClusterQueue: "research", Cohort: "all", Waiting: waiting, Strategy: "StrictFIFO", Budgets: []query.Budget{{
		Budget: quota.Budget{Name: "research-gpus", Queue: "research", Resource: gpu, Hours: 1000, Period: quota.Month, Action: quota.BudgetWarns}, UsedHours: 412.5, Until: time.Now(),
	}}}}
	for i := range nodes {
		n := query.Node{Node: capacity.Node{
			Cluster: "east", Name: fmt.Sprintf("gpu-%05d", i), Ready: i%100 != 7, Labels: map[string]string{"rack": fmt.Sprintf("rack-%04d", i/16), "kubernetes.io/hostname": fmt.Sprintf("gpu-%05d", i)},
			Allocatable: resource.List{gpu: 8, resource.CPU: 128_000, resource.Memory: 1 << 40},
		}}
		n.Free = resource.List{gpu: int64(i % 9), resource.CPU: 1000, resource.Memory: 1 << 30}
		n.Reserved = n.Allocatable.Minus(n.Free)
		a.nodes.Nodes = append(a.nodes.Nodes, n)
	}
	return a
}
