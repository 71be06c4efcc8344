package app_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// epoch is that of the lease, and who holds it.
func (w *world) epoch() (int64, string) {
	w.t.Helper()
	held, err := w.core.CoordinationV1().Leases(rbac.Namespace).Get(w.t.Context(), "muster-dispatcher-"+w.namespace, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	epoch, _ := strconv.ParseInt(held.Annotations[lease.EpochKey], 10, 64)
	if held.Spec.HolderIdentity == nil {
		return epoch, ""
	}
	return epoch, *held.Spec.HolderIdentity
}

// takenAfter waits for a later epoch.
func (w *world) takenAfter(epoch int64) (later int64) {
	w.t.Helper()
	w.await("a later epoch", func() bool {
		later, _ = w.epoch()
		return later > epoch
	})
	return later
}

// TestAPausedDispatcherGoesOn: it was stopped with a command on its way to it; its
// successor has obeyed that and the next ones; then it wakes, and may do nothing.
func TestAPausedDispatcherGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "paused", 1)
	d := newStep(t)
	created := w.countCreations()
	first := w.spawn(w.config(d))
	early := w.gang("early", "early", nil)
	d.command(early)
	before := d.awaitCreated("early").Session
	second := w.spawn(w.config(d))

	w.signal(first, syscall.SIGSTOP)
	late := w.gang("late", "late", nil)
	d.command(late) // the stopped one has it in its socket
	after := d.awaitCreated("late").Session
	if after <= before {
		t.Errorf("the successor reports in session %d, which is not after %d", after, before)
	}
	d.absent(late)
	d.awaitReleased("late")
	w.signal(first, syscall.SIGCONT)

	// Another workload, and another leader, show that time has gone by in which the
	// old one could have done harm.
	epoch, holder := w.epoch()
	d.command(w.gang("next", "next", nil))
	d.awaitCreated("next")
	w.signal(second, syscall.SIGKILL)
	w.takenAfter(epoch) // by the one that was paused
	last := w.gang("last", "last", nil)
	d.command(last)
	d.awaitCreated("last")
	w.await("the last creation is counted, and so all before it", func() bool { return created.of("last") > 0 })
	for name, want := range map[string]int{"early": 1, "late": 1, "next": 1, "last": 1} {
		if got := created.of(name); got != want {
			t.Errorf("%s came into being %d times", name, got)
		}
	}
	if _, now := w.epoch(); now == holder {
		t.Errorf("%s holds the lease although it was killed", now)
	}
}

// TestTwoDispatchersAtOnce: the first one acts; when it ends in order
// the other one follows at once.
func TestTwoDispatchersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "two", 1)
	d := newStep(t)
	created := w.countCreations()
	config := w.config(d)
	config.Lease.Duration = time.Minute // the test must not wait for its end
	stops := []func(){}
	var mu sync.Mutex
	var starting sync.WaitGroup
	for range 2 {
		starting.Go(func() {
			own := *config // each completes its own
			stop := w.runWith(&own)
			mu.Lock()
			defer mu.Unlock()
			stops = append(stops, stop)
		})
	}
	starting.Wait()
	sessions := map[int64]bool{}
	for i := range 10 {
		id := fmt.Sprintf("gang-%d", i)
		d.command(w.gang(workload.ID(id), id, nil))
		sessions[d.awaitCreated(workload.ID(id)).Session] = true
	}
	if len(sessions) != 1 {
		t.Errorf("%d sessions have reported: %v", len(sessions), sessions)
	}
	epoch, _ := w.epoch()
	for _, stop := range stops[:1] {
		stop()
	}
	d.command(w.gang("after", "after", nil))
	d.awaitCreated("after")
	if later, _ := w.epoch(); later < epoch {
		t.Errorf("epoch %d after %d", later, epoch)
	}
	w.await("the last creation is counted, and so all before it", func() bool { return created.of("after") > 0 })
	for i := range 10 {
		if name := fmt.Sprintf("gang-%d", i); created.of(name) != 1 {
			t.Errorf("%s came into being %d times", name, created.of(name))
		}
	}
}

// TestLeaseLostInTheMiddleOfACreation: the creation is on its way when the lease
// is lost, and arrives when its workload has been cancelled and forgotten. What
// comes into being is removed, and none of its pods starts.
func TestLeaseLostInTheMiddleOfACreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "middle", 1)
	d := newStep(t)
	proxy, kubeconfig := w.holdCreations(w.kubeconfig)
	config := w.config(d)
	config.Kubeconfig = kubeconfig
	first := w.spawn(config)
	gang := w.gang("gang", "gang", nil)
	d.command(gang)
	select {
	case <-proxy.arrived:
	case <-time.After(patience):
		t.Fatal("nothing is created")
	}
	epoch, _ := w.epoch()
	w.signal(first, syscall.SIGSTOP) // so it loses the lease
	w.spawn(w.config(d))
	w.takenAfter(epoch)
	d.absent(gang)
	d.awaitReleased("gang")
	forgotten := gang
	forgotten.State, forgotten.PodSets, forgotten.Placements, forgotten.Manifest = event.Forgotten, nil, nil, nil
	d.command(forgotten)
	forgot := func(_ context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		if r.ID == gang.Workload {
			return query.WorkloadsAnswer{}, nil
		}
		// Objects of other tests' namespaces are seen, too, and are live.
		return query.WorkloadsAnswer{Workloads: []workload.Record{{Cluster: clusterName, Holding: true}}}, nil
	}
	if err := query.Handle(t.Context(), d.bus.Conn(), query.WorkloadsSubject, forgot); err != nil { // as queue-manager
		t.Fatal(err)
	}

	created := w.countCreations()
	close(proxy.letGo)
	w.await("the late creation arrives", func() bool { return created.of("gang") == 1 })
	w.signal(first, syscall.SIGCONT) // not before: it gives up what is still on its way
	w.await("it is removed", func() bool {
		list, err := w.objects.Resource(resource("RayCluster")).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	pods, err := w.core.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s was started on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}
