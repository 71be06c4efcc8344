package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/capacity-watcher/app"
)

const clusterName = "test"

func startNATS(t *testing.T, port int) *natsserver.Server {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// run starts the service and returns when it is ready; stop ends it.
func (w *world) run(natsURL string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	rt := service.NewRuntime(zaptest.NewLogger(w.t), "capacity-watcher")
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, &app.Config{
			NATS: bus.Settings{URL: natsURL}, Cluster: clusterName, Kubeconfig: w.kubeconfig, NodeSelector: w.label,
			Lease: lease.Config{Lease: rbac.Namespace + "/" + w.lease},
		}, rt)
	}()
	stop = func() {
		if ctx.Err() != nil {
			return
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.t.Errorf("the service ended with %v", err)
		}
	}
	w.t.Cleanup(stop)
	ready, done := context.WithTimeout(ctx, patience)
	defer done()
	if err := rt.Health.WaitReady(ready); err != nil {
		w.t.Fatal(err)
	}
	return stop
}

// reader keeps the last value of each subject, as queue-manager does.
type reader struct {
	t         *testing.T
	following *bus.Following
	last      map[string]event.Payload
}

func newReader(t *testing.T, url string) *reader {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Options{URL: url, Name: "reader", Logger: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	following, err := b.Follow(t.Context(), bus.CapacityStream, event.CapacityFilter(clusterName))
	if err != nil {
		t.Fatal(err)
	}
	return &reader{t: t, following: following, last: map[string]event.Payload{}}
}

// await reads until the condition is met.
func (r *reader) await(what string, met func() bool) {
	r.t.Helper()
	deadline := time.After(patience)
	for !met() {
		select {
		case delivery := <-r.following.C:
			_, payload, err := delivery.Event()
			if err != nil {
				r.t.Fatal(err)
			}
			r.last[delivery.Subject] = payload
		case <-deadline:
			r.t.Fatalf("nothing within %s: %s; the stream has %s", patience, what, r)
		}
	}
}

// String shows the stream's values.
func (r *reader) String() string {
	got, err := json.MarshalIndent(r.last, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(got)
}

func (r *reader) node(name string) *capacity.Node {
	if got, ok := r.last[event.NodeSubject(clusterName, name)].(*event.NodeObserved); ok {
		return &got.Node
	}
	return nil
}

func (r *reader) removed(name string) bool {
	_, ok := r.last[event.NodeSubject(clusterName, name)].(*event.NodeRemoved)
	return ok
}

func (r *reader) gang(id string) *event.GangObserved {
	got, _ := r.last["muster.capacity."+clusterName+".gang."+id].(*event.GangObserved)
	return got
}

func (r *reader) synced() *event.CapacitySynced {
	got, _ := r.last[event.SyncedSubject(clusterName)].(*event.CapacitySynced)
	return got
}

func cpus(n int64) resource.List { return resource.List{resource.CPU: 1000 * n, resource.Pods: n} }

// TestLife follows nodes and pods through their changes.
func TestLife(t *testing.T) {
	t.Parallel()
	w, nats := newWorld(t, "life"), startNATS(t, -1)
	w.run(nats.URL())
	r := newReader(t, nats.URL())

	w.addNode("life-a")
	r.await("node added", func() bool { return r.node("life-a") != nil && r.node("life-a").Ready })
	want := resource.List{resource.CPU: 8000, resource.Memory: 32 << 30, "nvidia.com/gpu": 2, resource.Pods: 110}
	if diff := cmp.Diff(want, r.node("life-a").Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	w.addPod("life-other", "life-a", nil)
	r.await("unmanaged pod", func() bool { return r.node("life-a").Unmanaged.Equal(cpus(1)) })
	w.addPod("life-second", "life-a", map[string]string{"app": "x"})
	r.await("second unmanaged pod", func() bool { return r.node("life-a").Unmanaged.Equal(cpus(2)) })
	w.endPod("life-second")
	r.await("unmanaged pod ended", func() bool { return r.node("life-a").Unmanaged.Equal(cpus(1)) })
	w.deletePod("life-other")
	r.await("unmanaged pod gone", func() bool { return r.node("life-a").Unmanaged.Equal(nil) })

	w.node("cordon", "life-a")
	r.await("cordoned", func() bool { return r.node("life-a").Cordoned })

	w.addPod("life-stranger", "life-a", map[string]string{kube.ClusterLabel: "another", kube.WorkloadLabel: "life-workload"})
	r.await("pod of another Muster", func() bool { return r.node("life-a").Unmanaged.Equal(cpus(1)) })
	w.deletePod("life-stranger")
	r.await("pod of another Muster gone", func() bool { return r.node("life-a").Unmanaged.Equal(nil) })
	w.addPod("life-unknown", "life-a", map[string]string{kube.ClusterLabel: clusterName})
	r.await("pod with no workload's id", func() bool { return r.gang("_") != nil && len(r.gang("_").Pods) == 1 })

	w.addPod("life-head", "life-a", map[string]string{
		kube.WorkloadLabel: "life-workload", kube.ClusterLabel: clusterName, kube.AttemptLabel: "3", kube.PodSetLabel: "head",
	})
	r.await("pod of a gang is ready", func() bool {
		g := r.gang("life-workload")
		return g != nil && len(g.Pods) == 1 && g.Pods[0].Ready
	})
	pods := []event.GangPod{{
		Name: "life-head", Attempt: 3, PodSet: "head", Node: "life-a", Phase: "Running", Ready: true, Requests: cpus(1), Chain: 1,
	}}
	if diff := cmp.Diff(pods, r.gang("life-workload").Pods); diff != "" {
		t.Errorf("pods of the gang (-want +got):\n%s", diff)
	}
	if unmanaged := r.node("life-a").Unmanaged; !unmanaged.Equal(nil) {
		t.Errorf("a gang's pod counts as unmanaged: %v", unmanaged)
	}
	w.setPod("life-head", `{"status": {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [{"name": "c", "image": "none", "imageID": "",
		"ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull", "message": "none: not found"}}}]}}`)
	r.await("what the pod waits for", func() bool {
		return r.gang("life-workload").Pods[0].Waits == `container c waits: ImagePullBackOff: Back-off pulling image "none": ErrImagePull: none: not found`
	})
	w.deletePod("life-head")
	r.await("pod of a gang is gone", func() bool { return len(r.gang("life-workload").Pods) == 0 })

	w.node("remove", "life-a")
	r.await("node removed", func() bool { return r.removed("life-a") })
}

// TestRestart: a new watcher publishes removals of what vanished while none ran, under a
// later session, and lists what exists.
func TestRestart(t *testing.T) {
	t.Parallel()
	w, nats := newWorld(t, "restart"), startNATS(t, -1)
	w.addNode("restart-a")
	w.addNode("restart-b")
	w.addPod("restart-head", "restart-a", map[string]string{kube.WorkloadLabel: "restart-workload", kube.ClusterLabel: clusterName})
	w.addPod("restart-other", "restart-a", nil)
	stop := w.run(nats.URL())
	r := newReader(t, nats.URL())
	r.await("first list", func() bool { return r.synced() != nil })
	if diff := cmp.Diff([]string{"restart-a", "restart-b"}, r.synced().Nodes); diff != "" {
		t.Errorf("listed nodes (-want +got):\n%s", diff)
	}
	if r.node("restart-a") == nil || r.node("restart-b") == nil || r.gang("restart-workload") == nil {
		t.Errorf("the list came before what it lists: %s", r)
	}
	first := r.synced().Version
	stop()

	w.node("remove", "restart-b")
	w.addNode("restart-c")
	w.deletePod("restart-head")
	w.deletePod("restart-other")
	w.awaitNoPods("restart-head", "restart-other")
	w.run(nats.URL())
	r.await("second list", func() bool { return first.Before(r.synced().Version) })
	if r.synced().Version.Session <= first.Session {
		t.Errorf("session is %d, want one after %d", r.synced().Version.Session, first.Session)
	}
	if diff := cmp.Diff([]string{"restart-a", "restart-c"}, r.synced().Nodes); diff != "" {
		t.Errorf("listed nodes (-want +got):\n%s", diff)
	}
	if !r.removed("restart-b") || r.node("restart-c") == nil || len(r.gang("restart-workload").Pods) != 0 {
		t.Errorf("something is missing: %s", r)
	}
	if unmanaged := r.node("restart-a").Unmanaged; !unmanaged.Equal(nil) {
		t.Errorf("unmanaged on restart-a is %v, want nothing", unmanaged)
	}
}

// TestLostStreams: when NATS comes back without its data, everything is republished.
func TestLostStreams(t *testing.T) {
	t.Parallel()
	w, nats := newWorld(t, "lost"), startNATS(t, -1)
	w.addNode("lost-a")
	w.run(nats.URL())
	address, err := url.Parse(nats.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	nats.Stop()
	r := newReader(t, startNATS(t, port).URL())
	r.await("everything again", func() bool { return r.node("lost-a") != nil && r.synced() != nil })
}

// TestManyChanges: after a burst the stream has the last values.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	w, nats := newWorld(t, "many"), startNATS(t, -1)
	w.addNode("many-a")
	w.run(nats.URL())
	r := newReader(t, nats.URL())
	for i := range 50 {
		w.addPod("many-"+strconv.Itoa(i), "many-a", nil)
	}
	r.await("50 pods", func() bool { return r.node("many-a") != nil && r.node("many-a").Unmanaged.Equal(cpus(50)) })
	for i := range 50 {
		w.deletePod("many-" + strconv.Itoa(i))
	}
	r.await("no pods", func() bool { return r.node("many-a").Unmanaged.Equal(nil) })
}

// TestStandby: a second instance waits, and publishes once the first has ended.
func TestStandby(t *testing.T) {
	t.Parallel()
	w, nats := newWorld(t, "standby"), startNATS(t, -1)
	stop := w.run(nats.URL())
	r := newReader(t, nats.URL())
	synced := func() int64 {
		if got, ok := r.last[event.SyncedSubject(clusterName)].(*event.CapacitySynced); ok {
			return got.Version.Session
		}
		return 0
	}
	r.await("a list", func() bool { return synced() != 0 })
	first := synced()
	w.run(nats.URL())
	if synced() != first {
		t.Error("the second instance publishes while the first runs")
	}
	stop()
	r.await("a list of the second", func() bool { return synced() > first })
}
