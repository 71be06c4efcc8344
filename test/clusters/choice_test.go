package clusters

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// apply applies descriptions of clusters, as `muster apply` does.
func (w *world) apply(manifests ...string) {
	w.t.Helper()
	var request query.ConfigureRequest
	for _, m := range manifests {
		request.Apply = append(request.Apply, json.RawMessage(m))
	}
	if _, err := w.Queries.Configure(w.t.Context(), "", request); err != nil {
		w.t.Fatal(err)
	}
}

// described is the manifest of a cluster where a GPU costs so much an hour.
func described(name, price, tier string) string {
	return fmt.Sprintf(`{"apiVersion": "muster.dev/v1beta1", "kind": "Cluster", "metadata": {"name": %q},
		"spec": {"labels": {"tier": %q}, "costPerHour": {"nvidia.com/gpu": %q}}}`, name, tier, price)
}

// order cordons or drains a cluster, or ends that, as intake does for an operator.
func (w *world) order(r query.HoldRequest) {
	w.t.Helper()
	r.By = "the test"
	if _, err := w.Queries.Hold(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

// states returns the state of each cluster, as `muster get clusters` shows it.
func (w *world) states() map[string]string {
	w.t.Helper()
	answer, err := w.Queries.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	states := map[string]string{}
	for _, c := range answer.Clusters {
		states[c.Name] = c.State
	}
	return states
}

// Gangs go to the cheaper cluster while it has room, and to the one that they select
// whatever it costs. One that selects a full cluster waits for it, and its explanation has
// a reason for each cluster.
func TestGangsGoToTheCheapestOrTheSelectedCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{})
	w.apply(described(w.Pool, "3", "reserved"), described(w.second.Name, "1.5", "spot"))
	w.nodes(2, 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.RayCluster("cheap", 1, 2))
	w.runsIn(a, 1, w.second.Name)
	b := w.submit(stack.RayCluster("overflow", 1, 2))
	w.runsIn(b, 1, w.Pool)
	c := w.submit(stack.Annotated(stack.RayCluster("only-spot", 1, 2), "muster.dev/clusters", "tier=spot"))
	w.waits(c, "Insufficient nvidia.com/gpu", fmt.Sprintf("not counted: cluster %q is not selected by \"tier=spot\"", w.Pool))
	explained, err := w.Queries.Explain(t.Context(), query.ExplainRequest{ID: c})
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]workload.ClusterReason{}
	for _, reason := range explained.Clusters {
		why[reason.Cluster] = reason
	}
	if len(why) != 2 || why[w.Pool].Open || !why[w.second.Name].Open {
		t.Errorf("the clusters are explained by %+v", why)
	}
	w.cancel(a)
	w.runsIn(c, 1, w.second.Name)
}

// A cordoned cluster gets nothing new and keeps what runs there. A drained one is emptied,
// and its gangs run in the other one as their next attempt.
func TestCordonAndDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{})
	w.apply(described(w.Pool, "1", "a"), described(w.second.Name, "2", "b"))
	w.nodes(2, 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.RayCluster("stays", 1, 2))
	w.runsIn(a, 1, w.Pool)
	w.order(query.HoldRequest{Cluster: w.Pool, Why: "new switches"})
	b := w.submit(stack.RayCluster("goes-elsewhere", 1, 2))
	w.runsIn(b, 1, w.second.Name)
	c := w.submit(stack.RayCluster("waits", 1, 2))
	w.waits(c, fmt.Sprintf("cluster %q is cordoned", w.Pool), "by the test: new switches")
	if record := w.one(a); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("the gang of the cordoned cluster is %s in attempt %d", record.Phase, record.Attempt)
	}
	if got := w.states(); got[w.Pool] != query.ClusterCordoned || got[w.second.Name] != query.ClusterReady {
		t.Errorf("the states are %v", got)
	}
	w.order(query.HoldRequest{Cluster: w.Pool, Resume: true})
	w.runsIn(c, 1, w.Pool)
	w.cancel(c)
	w.cancel(b)
	w.order(query.HoldRequest{Cluster: w.Pool, Drain: true, Why: "it goes back"})
	w.runsIn(a, 2, w.second.Name)
	w.until("the first cluster is drained", func() bool { return w.states()[w.Pool] == query.ClusterDrained })
	if pods := podsOf(t, w.Kube, a); len(pods) > 0 {
		t.Errorf("%d pods are left in the drained cluster", len(pods))
	}
}

// A cluster whose watcher is silent gets no new gang, and the reason says so; the gang that
// runs there stays. So it is when queue-manager starts again meanwhile. When the watcher is
// back the waiting gangs start.
func TestASilentClusterGetsNoNewGang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{ClusterSilence: 10 * time.Second})
	w.nodes(1, 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.Annotated(stack.RayCluster("there", 1, 2), "muster.dev/clusters", "muster.dev/cluster="+w.second.Name))
	w.runsIn(a, 1, w.second.Name)
	if err := w.second.StopService(stack.CapacityWatcher); err != nil {
		t.Fatal(err)
	}
	w.until("the second cluster is silent", func() bool { return w.states()[w.second.Name] == query.ClusterSilent })
	b := w.submit(stack.Annotated(stack.RayCluster("waits", 1, 2), "muster.dev/clusters", "muster.dev/cluster="+w.second.Name))
	w.waits(b, fmt.Sprintf("cluster %q has not reported since", w.second.Name))
	c := w.submit(stack.RayCluster("elsewhere", 1, 2))
	w.runsIn(c, 1, w.Pool)
	if record := w.one(a); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("the gang of the silent cluster is %s in attempt %d", record.Phase, record.Attempt)
	}
	if err := w.StopService(stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	d := w.submit(stack.Annotated(stack.RayCluster("waits-too", 0, 0), "muster.dev/clusters", "muster.dev/cluster="+w.second.Name))
	if err := w.StartService(t.Context(), stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	w.waits(d, fmt.Sprintf("cluster %q has not reported since", w.second.Name))
	if err := w.second.StartService(t.Context(), stack.CapacityWatcher); err != nil {
		t.Fatal(err)
	}
	w.runsIn(b, 1, w.second.Name)
	w.runsIn(d, 1, w.second.Name)
	if record := w.one(a); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("when its cluster reports again the gang is %s in attempt %d", record.Phase, record.Attempt)
	}
}
