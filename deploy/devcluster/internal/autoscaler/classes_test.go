package autoscaler

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

// own adds a node of no pool, with two GPUs.
func (b *bench) own(t *testing.T, name string) {
	t.Helper()
	group := fleet.Group{Name: name, Allocatable: map[corev1.ResourceName]resource.Quantity{"nvidia.com/gpu": resource.MustParse("2")}}
	if _, err := b.client.CoreV1().Nodes().Create(t.Context(), group.Nodes(nil)[0], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// What Cluster Autoscaler documents of the class: it adds no node, and says Provisioned when
// the nodes that exist hold all pods of the request.
func TestCheckCapacityAddsNoNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: -1})
	b.own(t, "own-0")
	b.askOf(t, checkCapacity, "fits", 1, nil)
	b.askOf(t, checkCapacity, "waits", 2, nil)
	b.askOf(t, checkCapacity, "once", 2, map[string]any{"noRetry": "true"})
	b.step(t, 0)
	b.want(t, "fits", "Accepted Provisioned", 0)
	b.want(t, "waits", "Accepted", 0) // one GPU is booked
	b.want(t, "once", "Accepted Failed", 0)
	b.own(t, "own-1")
	b.step(t, time.Second)
	b.want(t, "waits", "Accepted Provisioned", 0)
}

// GKE reports by which resize request the nodes of a request came, and labels them with it. The
// classes of Cluster Autoscaler have no such details.
func TestQueuedProvisioningHasDetails(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]map[string]string{
		queuedProvisioning: {"ResizeRequestName": "resize-one", "NodePoolName": "l4"},
		bestEffortAtomic:   nil,
		checkCapacity:      nil,
	} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Pool{Max: 10, Stock: -1, Min: 1})
			b.step(t, 0)
			b.askOf(t, class, "one", 2, nil)
			for range 3 {
				b.step(t, time.Second)
			}
			object, err := b.requests.Resource(Requests).Namespace("default").Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := requestOf(object)
			if err != nil {
				t.Fatal(err)
			}
			if !r.is(Provisioned) || !maps.Equal(r.Status.Details, want) {
				t.Errorf("the details are %v, want %v: %s", r.Status.Details, want, conditionsText(r))
			}
			list, err := b.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: gkeRequestLabel})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range list.Items {
				if n.Labels[gkeRequestLabel] != want["ResizeRequestName"] {
					t.Errorf("node %s has the label %q", n.Name, n.Labels[gkeRequestLabel])
				}
			}
			if labelled := len(list.Items); (labelled == 1) != (want != nil) || labelled > 1 {
				t.Errorf("%d nodes have the label", labelled)
			}
		})
	}
}

// The class counts nodes that exist, is Provisioned when the others are ordered, and those
// come later.
func TestBestEffortIsProvisionedBeforeItsNodesAreThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: 1, Delay: metav1.Duration{Duration: time.Minute}})
	b.own(t, "own-0")
	b.askOf(t, bestEffortAtomic, "large", 6, nil) // two nodes more
	b.step(t, 0)
	b.want(t, "large", "Accepted", 0)
	b.askOf(t, bestEffortAtomic, "one", 3, nil)
	b.step(t, time.Second)
	b.want(t, "one", "Accepted Provisioned", 0)
	b.step(t, 59*time.Second)
	b.want(t, "one", "Accepted Provisioned", 0)
	b.step(t, time.Second)
	b.want(t, "one", "Accepted Provisioned", 1)
	b.step(t, time.Hour)
	b.want(t, "one", "Accepted Provisioned", 1)
}

func TestNodesOfARequestThatNeverCome(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 10, Stock: -1, Missing: 1})
	b.ask(t, "one", 6)
	b.step(t, 0)
	b.want(t, "one", "Accepted Provisioned", 2)
}

func TestAPoolAddsNodesForPendingPods(t *testing.T) {
	t.Parallel()
	b := newBench(t, Pool{Max: 2, Stock: -1, Pending: true, Delay: metav1.Duration{Duration: time.Minute}})
	pending := func(name, reason string, annotations map[string]string) {
		t.Helper()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations},
			Spec:       *podOf(map[string]string{"nvidia.com/gpu": "1"}, nil),
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason}}},
		}
		if _, err := b.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want int) {
		t.Helper()
		list, err := b.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: PoolLabel + "=l4"})
		if err != nil || len(list.Items) != want {
			t.Fatalf("the pool has %d nodes (%v), want %d", len(list.Items), err, want)
		}
	}
	pending("gated", corev1.PodReasonSchedulingGated, nil)
	pending("of-a-request", corev1.PodReasonUnschedulable, map[string]string{consumes: "one"})
	b.step(t, 0)
	b.step(t, time.Hour)
	count(0)
	pending("a", corev1.PodReasonUnschedulable, nil)
	b.step(t, 0)
	count(0)
	b.step(t, time.Minute)
	count(1)
	b.step(t, time.Minute) // the scheduler has not seen it yet
	b.step(t, time.Minute)
	count(1)
	for _, name := range []string{"b", "c", "d", "e"} { // three nodes would be needed
		pending(name, corev1.PodReasonUnschedulable, nil)
	}
	b.step(t, 0)
	b.step(t, time.Minute)
	count(2)
}
