package output_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMain fixes the time zone, which descriptions print times in.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

const gib = 1 << 30

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func glue(name string) workload.Workload {
	return workload.Workload{
		ID: workload.ID("00000000-0000-5000-8000-" + name), Queue: "default", Namespace: "team", Kind: "RayCluster", Name: name,
		PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{
				Requests: resource.List{resource.CPU: 2000, resource.Memory: 16 * gib, resource.Pods: 1},
			}},
			{Name: "small", Role: workload.RoleWorker, Count: 2, Template: workload.Template{
				Requests: resource.List{resource.CPU: 4500, resource.Memory: 16 * gib, "nvidia.com/gpu": 2, resource.Pods: 1},
			}},
		},
	}
}

func records() []workload.Record {
	runs := workload.Record{
		Workload: glue("runs"), Phase: workload.Running, Attempt: 2, Cluster: "local", Holding: true,
		Placements: []workload.Placement{{PodSet: "headgroup", Node: "n1", Pods: 1}, {PodSet: "small", Node: "n2", Pods: 2}},
		Times: workload.Times{
			Submitted: now().Add(-3 * time.Hour), Admitted: now().Add(-time.Hour),
			Dispatched: now().Add(-time.Hour + 20*time.Millisecond), Running: now().Add(-time.Hour + 2*time.Second),
		},
	}
	waits := workload.Record{
		Workload: glue("waits"), Phase: workload.Queued, Attempt: 1, Position: 1,
		Reason: &workload.Reason{
			Kind:    workload.ReasonFit,
			Message: `2 of 2 pods of pod set "small" do not fit: 0/4 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) were not ready, 1 node(s) had untolerated taint. Each pod requests nvidia.com/gpu 2; free: 1 on the best node, 2 in sum over 2 eligible nodes, but not on one node`,
			Shortage: &workload.Shortage{
				PodSet: "small", Pods: 2, Unplaced: 2, Resource: "nvidia.com/gpu", Asked: 2, Largest: 1, Sum: 2,
				Eligible: 2, Nodes: 4, Excluded: map[string]int{"taint": 1, "not ready": 1},
			},
		},
		Times: workload.Times{Submitted: now().Add(-90 * time.Second)},
	}
	ended := workload.Record{
		Workload: glue("ended"), Phase: workload.Cancelled, Attempt: 1, Holding: true, Cluster: "local",
		Reason: &workload.Reason{Kind: workload.ReasonCancelled, Message: "cancelled on request"},
		Times:  workload.Times{Submitted: now().Add(-50 * time.Hour), Finished: now().Add(-time.Minute)},
	}
	return []workload.Record{runs, waits, ended}
}

func queue() query.Queue {
	return query.Queue{
		Name: "default", Namespaces: []string{"team", "team-2"}, Strategy: "BestEffortFIFO", Waiting: 1, Live: 2,
		Reserved:     resource.List{resource.CPU: 11000, resource.Memory: 48 * gib, "nvidia.com/gpu": 4, resource.Pods: 3},
		ClusterQueue: "default", Cohort: "all", StopPolicy: quota.Hold, Share: 125_000,
		Quota: []quota.Line{
			{FlavorResource: quota.FlavorResource{Resource: resource.CPU}, Used: 11000, Unbounded: true},
			{FlavorResource: quota.FlavorResource{Flavor: "v100", Resource: "nvidia.com/gpu"}, Nominal: 3, Used: 4, Borrowed: 1, Available: 2},
		},
	}
}

func heldQueue() query.Queue {
	q := queue()
	q.Hold = &quota.QueueStop{Name: q.Name, Since: now().Add(-time.Hour), By: "ann@admin-workstation-17", Why: "new driver"}
	return q
}

func explanation() output.Explanation {
	return output.Explanation{Name: "glue-2", Phase: workload.Queued, Explanation: workload.Explanation{
		Workload: records()[1].ID, Queue: "default", Position: 2, Waiting: 5, Reason: *records()[1].Reason, Partial: true,
		Changes: []workload.Change{
			{Kind: workload.ChangeFewerPods, PodSet: "small", Pods: 1, Message: `1 pod fewer in pod set "small" (1 instead of 2)`},
			{Kind: workload.ChangeAfterEnd, Workloads: []workload.ID{"x"}, Message: "after the end of workload x"},
		},
	}}
}

// evictionCost is what the workload that runs would lose by an eviction.
func evictionCost() *workload.EvictionCost {
	return &workload.EvictionCost{Lost: 2400, Since: now().Add(-10 * time.Minute), Checkpoint: true, Restart: 240, Return: 3600, Unit: workload.UnitAccelerators}
}

func node() query.Node {
	return query.Node{
		Node: capacity.Node{
			Cluster: "local", Name: "n2", Ready: true, Cordoned: true, Created: now().Add(-50 * time.Hour),
			Labels:      map[string]string{"zone": "a", "gpu": "v100"},
			Taints:      []capacity.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}, {Key: "x", Effect: "NoExecute"}},
			Allocatable: resource.List{resource.CPU: 16000, resource.Memory: 122 * gib, "nvidia.com/gpu": 4, resource.Pods: 110},
			Unmanaged:   resource.List{resource.CPU: 250, resource.Pods: 3},
		},
		Reserved: resource.List{resource.CPU: 9000, resource.Memory: 32 * gib, "nvidia.com/gpu": 4, resource.Pods: 2},
		Free:     resource.List{resource.CPU: 6750, resource.Memory: 90 * gib, "nvidia.com/gpu": 0, resource.Pods: 105},
	}
}

func statusAnswer() query.StatusAnswer {
	lag := int64(20 << 10)
	return query.StatusAnswer{
		At:        now(),
		Leader:    &query.LeaderStatus{Holder: "muster-0/7", Epoch: 1795000000000001, Since: now().Add(-3 * time.Minute), Leads: true, Standbys: 1},
		Workloads: map[workload.Phase]int{workload.Queued: 4, workload.Running: 2},
		Held:      []string{`queue "research" is held since 2026-11-21T11:00:00Z by ann@ops`},
		Clusters: []query.ClusterStatus{
			{Name: "east", State: query.ClusterCordoned, Nodes: 2, Live: 1, WatcherHeard: now().Add(-3 * time.Second)},
			{Name: "west", State: query.ClusterReady, Nodes: 5, ReadyNodes: 4, Silent: "no answer within 2s"},
		},
		Postgres: query.PostgresStatus{Version: "15.14", Connections: 12, MaxConnections: 100, Bytes: 34 << 20, Followers: 1, LagBytes: &lag},
		NATS: query.NATSStatus{
			Version: "2.12.1", Server: "nats-0", Cluster: "muster", Servers: 3, StoredBytes: 12 << 20, LimitBytes: 8 << 30,
			Streams: []query.StreamStatus{
				{Name: "MUSTER_SUBMIT", Messages: 3, Bytes: 4 << 10, LimitBytes: 512 << 20, Copies: 3, Leader: "nats-0", Away: []string{"nats-2"}},
				{Name: "MUSTER_STATUS", Messages: 7, Bytes: 900, Copies: 1},
				{Name: "MUSTER_DEAD", Silent: "no answer within 2s"},
			},
		},
		Notes:     []string{"not ready in cluster west: 1 of 5 nodes; see `muster get nodes`"},
		Attention: []string{"no node of cluster east is ready: check its API server and nodes"},
	}
}

// TestNodeStatus: a node says why it takes nothing new.
func TestNodeStatus(t *testing.T) {
	t.Parallel()
	drain := []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}}
	for want, n := range map[string]capacity.Node{
		"Ready": {Ready: true}, "NotReady": {}, "Draining": {Ready: true, Taints: drain}, "NotReady,Cordoned,Draining": {Cordoned: true, Taints: drain},
	} {
		t.Run(want, func(t *testing.T) {
			if got := output.Nodes([]query.Node{{Node: n}}, output.Text, now()).Rows[0][2]; got != want {
				t.Errorf("the status is %q, want %q", got, want)
			}
		})
	}
}

// TestTableWidth: a list of waiting workloads has its figures within a hundred columns of a
// terminal, and all of each reason in a file.
func TestTableWidth(t *testing.T) {
	t.Parallel()
	all := records()[:2]
	all[1].Name, all[1].Queue = "raycluster-glue-17", "research"
	var table strings.Builder
	all = append(all, records()[2])
	all[2].Holding, all[2].Reason = false, &workload.Reason{Kind: workload.ReasonInvalid, Message: strings.Repeat("a long reason ", 12) + "ends"}
	if err := output.Workloads(all, output.Text, now()).Write(output.Within(&table, 100), ""); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
	if want := "needs 2 gpu, best has 1"; !strings.Contains(table.String(), want) {
		t.Errorf("the table lacks %q:\n%s", want, table.String())
	}
	table.Reset()
	if err := output.Workloads(all, output.Text, now()).Write(&table, ""); err != nil || !strings.Contains(table.String(), "a long reason ends\n") {
		t.Errorf("%v, a file lacks the end of a reason:\n%s", err, table.String())
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	list := func(format output.Format) func(io.Writer) error {
		return func(w io.Writer) error {
			return output.Print(w, format, query.WorkloadsAnswer{Workloads: records()}, func() output.Table {
				return output.Workloads(records(), format, now())
			})
		}
	}
	history := []query.HistoryEntry{
		{At: now().Add(-90 * time.Second), Phase: workload.Queued, Attempt: 1},
		{At: now().Add(-90*time.Second + 4*time.Millisecond), Phase: workload.Queued, Attempt: 1, Reason: records()[1].Reason},
	}
	table := func(t output.Table) func(io.Writer) error {
		return func(w io.Writer) error { return t.Write(w, "") }
	}
	tests := map[string]func(io.Writer) error{
		"workloads.txt":      list(output.Text),
		"workloads-wide.txt": list(output.Wide),
		"workloads.json":     list(output.JSON),
		"workloads.yaml":     list(output.YAML),
		"queues-wide.txt":    table(output.Queues([]query.Queue{queue()}, output.Wide)),
		"queues-held.txt":    table(output.Queues([]query.Queue{heldQueue()}, output.Text)),
		"nodes.txt":          table(output.Nodes([]query.Node{node()}, output.Text, now())),
		"nodes-wide.txt":     table(output.Nodes([]query.Node{node()}, output.Wide, now())),
		"describe-workload-waiting.txt": func(w io.Writer) error {
			return output.DescribeWorkload(w, output.Workload{Record: records()[1], History: history}, now())
		},
		"describe-workload-running.txt": func(w io.Writer) error {
			return output.DescribeWorkload(w, output.Workload{Record: records()[0]}, now())
		},
		"describe-workload-saved.txt": func(w io.Writer) error {
			saves := records()[0]
			saves.SetSaved(saves.Saved().Next(2, now().Add(-10*time.Minute), now().Add(-10*time.Minute)))
			return output.DescribeWorkload(w, output.Workload{Record: saves, Eviction: evictionCost()}, now())
		},
		"describe-workload-failed.txt": func(w io.Writer) error {
			failed := records()[0]
			failed.Kind, failed.Phase, failed.Holding, failed.Times.Finished = "RayJob", workload.Failed, false, now().Add(-time.Minute)
			return output.DescribeWorkload(w, output.Workload{Record: failed}, now())
		},
		"describe-queue.txt": func(w io.Writer) error {
			return output.DescribeQueue(w, output.Queue{Queue: queue(), Workloads: records()[:2]}, now())
		},
		"describe-queue-held.txt": func(w io.Writer) error {
			return output.DescribeQueue(w, output.Queue{Queue: heldQueue()}, now())
		},
		"explain.txt": func(w io.Writer) error { return output.Explain(w, explanation()) },
		"explain-running.txt": func(w io.Writer) error {
			return output.Explain(w, output.Explanation{Name: "glue-1", Phase: workload.Running, Explanation: workload.Explanation{Workload: "x", Queue: "default", Eviction: evictionCost()}})
		},
		"status.txt": func(w io.Writer) error { return output.Status(w, statusAnswer()) },
		"status-silent.txt": func(w io.Writer) error {
			return output.Status(w, query.StatusAnswer{
				At: now(), Postgres: query.PostgresStatus{Silent: "no answer within 2s"}, NATS: query.NATSStatus{Silent: "NATS connection is RECONNECTING"},
				Attention: []string{"Postgres is silent (no answer within 2s): nothing is admitted; check the server and queue-manager's database URL"},
			})
		},
		"describe-node.txt": func(w io.Writer) error {
			return output.DescribeNode(w, output.Node{Node: node(), Workloads: records()[:1]}, now())
		},
	}
	for name, print := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := print(&got); err != nil {
				t.Fatal(err)
			}
			golden(t, name, got.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	var format output.Format
	for _, name := range []string{"text", "wide", "json", "name", "jsonpath={.a}", "yaml"} {
		t.Run(name, func(t *testing.T) {
			if err := format.Set(name); err != nil || format.String() != name {
				t.Errorf("Set(%q) makes it %q, %v", name, format.String(), err)
			}
		})
	}
	if err := format.Set("xml"); err == nil || format != output.YAML {
		t.Errorf(`Set("xml") makes it %q, %v`, format, err)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1_234_567 * time.Nanosecond: "1ms", 2345 * time.Millisecond: "2.345s", 12345 * time.Millisecond: "12.3s", -1: "-",
	} {
		t.Run(d.String(), func(t *testing.T) {
			if got := output.Latency(d); got != want {
				t.Errorf("Latency(%d) = %q, want %q", d, got, want)
			}
		})
	}
}
