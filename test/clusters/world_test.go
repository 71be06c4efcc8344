package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

// patience is how long a test waits for what must happen. The API server of a busy machine
// may stand still for a minute.
const patience = 2 * time.Minute

// world is a stack whose queue-manager decides for two or three clusters. The first is called as
// the stack is, the others have a name behind it.
type world struct {
	*stack.Stack
	second *stack.Member
	third  *stack.Member // nil but for newWorldOfThree

	t     *testing.T
	heard *bustest.Listener // lifecycle events
	sent  int
}

// newWorld has two clusters. With queues the second one has an intake, for what users make there
// with kubectl.
func newWorld(t *testing.T, o stack.Options, queues ...string) *world {
	t.Helper()
	go second.Start(t.Context()) // while the first one starts
	o.Cluster, o.Installed, o.Dir, o.DatabaseURL = first.Use(t).Cluster, true, t.TempDir(), databases.Database(t)
	o.Logger = zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	other := second.Use(t)
	s, err := stack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	w := &world{Stack: s, t: t, heard: bustest.New(t)}
	w.second = w.join(other, "second", queues...)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	t.Cleanup(func() { stacktest.NoNodeIsOverCommitted(t, s) })
	w.heard.Listen(ctx, s.Bus, bus.EventsStream, "muster.events.*.*")
	return w
}

// newWorldOfThree is newWorld with a third cluster.
func newWorldOfThree(t *testing.T, o stack.Options) *world {
	t.Helper()
	go third.Start(t.Context()) // while the others start
	w := newWorld(t, o)
	w.third = w.join(third.Use(t), "third")
	return w
}

// join has a cluster join until the end of the test.
func (w *world) join(c *clustertest.Cluster, name string, queues ...string) *stack.Member {
	w.t.Helper()
	m, err := w.Join(w.t.Context(), c.Cluster, name, queues...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			w.t.Error(err)
		}
	})
	return m
}

// nodes adds nodes to the first and the second cluster, and waits until they are known.
func (w *world) nodes(inFirst, inSecond int, resources ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	if inFirst > 0 {
		if err := w.AddNodes(ctx, "gpu", inFirst, resources...); err != nil {
			w.t.Fatal(err)
		}
	}
	if inSecond > 0 {
		if err := w.second.AddNodes(ctx, "gpu", inSecond, resources...); err != nil {
			w.t.Fatal(err)
		}
	}
	w.until("all nodes are known", func() bool {
		known := map[string]int{}
		for _, n := range w.knownNodes() {
			if n.Ready {
				known[n.Cluster]++
			}
		}
		return known[w.Pool] >= inFirst && known[w.second.Name] >= inSecond
	})
}

func (w *world) knownNodes() []query.Node {
	w.t.Helper()
	return stacktest.Nodes(w.t, w.Stack)
}

func (w *world) until(what string, met func() bool) {
	w.t.Helper()
	stacktest.Until(w.t, stacktest.Often, patience, what, met)
}

// submit publishes a manifest to the queue "default" over NATS.
func (w *world) submit(manifest string) workload.ID {
	w.t.Helper()
	w.sent++
	envelope := event.Envelope{
		SpecVersion: event.SpecVersion, ID: fmt.Sprintf("submission-%d", w.sent), Source: w.Pool, Type: event.SubmitType,
		DataContentType: "application/json", Data: []byte(manifest),
	}
	encoded, err := envelope.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	published, err := w.Bus.PublishEncoded(event.SubmitSubject("default"), event.NewID(), encoded, 0)
	if err == nil {
		err = published.Wait(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return event.WorkloadID(w.Pool, envelope.ID)
}

func (w *world) cancel(id workload.ID) {
	w.t.Helper()
	stacktest.Cancel(w.t, w.Stack, id)
}

// await returns the first event of the workload, seen or to come, that matches.
func (w *world) await(id workload.ID, what string, matches func(*event.WorkloadChanged) bool) *event.WorkloadChanged {
	w.t.Helper()
	return bustest.Await(w.heard, patience, fmt.Sprintf("workload %s: %s", id, what), func(e *event.WorkloadChanged) bool {
		return e.ID == id && matches(e)
	}, func() string {
		var seen []string
		for _, e := range bustest.Heard[*event.WorkloadChanged](w.heard) {
			if e.ID == id {
				seen = append(seen, fmt.Sprintf("%s in %q because of %+v", e.Phase, e.Cluster, e.Reason))
			}
		}
		return "it was " + strings.Join(seen, ", then ")
	})
}

// runsIn waits until the workload runs, and checks that all of its pods are in that cluster
// and on the reserved nodes, and none in the other.
func (w *world) runsIn(id workload.ID, attempt int, cluster string) {
	w.t.Helper()
	w.await(id, fmt.Sprintf("runs in attempt %d", attempt), func(e *event.WorkloadChanged) bool {
		return e.Phase == workload.Running && e.Attempt == attempt
	})
	record := w.one(id)
	if record.Cluster != cluster {
		w.t.Errorf("workload %s runs in cluster %s, want %s", record.Title(), record.Cluster, cluster)
	}
	planned, got := map[string]int{}, map[string]int{}
	for _, p := range record.Placements {
		planned[cluster+"/"+p.Node] += p.Pods
	}
	for in, client := range w.clients() {
		for _, pod := range podsOf(w.t, client, id) {
			got[in+"/"+pod.Spec.NodeName]++
		}
	}
	if fmt.Sprint(planned) != fmt.Sprint(got) {
		w.t.Errorf("workload %s: planned %v, pods are %v", record.Title(), planned, got)
	}
}

func (w *world) clients() map[string]kubernetes.Interface {
	all := map[string]kubernetes.Interface{w.Pool: w.Kube, w.second.Name: w.second.Kube}
	if w.third != nil {
		all[w.third.Name] = w.third.Kube
	}
	return all
}

// podsOf lists, uncached, the pods of a workload in a cluster.
func podsOf(t *testing.T, client kubernetes.Interface, id workload.ID) []corev1.Pod {
	t.Helper()
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// waits waits until the workload waits for a reason that has all of the texts.
func (w *world) waits(id workload.ID, texts ...string) {
	w.t.Helper()
	w.await(id, fmt.Sprintf("waits because of %q", texts), func(e *event.WorkloadChanged) bool {
		return e.Phase == workload.Queued && e.Reason != nil && !slices.ContainsFunc(texts, func(text string) bool {
			return !strings.Contains(e.Reason.Message, text)
		})
	})
}

func (w *world) one(id workload.ID) workload.Record {
	w.t.Helper()
	return stacktest.Workload(w.t, w.Stack, id)
}
