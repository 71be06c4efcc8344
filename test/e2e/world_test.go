package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

// patience is how long a test waits for what must happen. The API server of a busy
// machine may stand still for a minute.
const patience = 3 * time.Minute

// world is a stack as a test uses it.
type world struct {
	*stack.Stack
	t   *testing.T
	ctx context.Context
	// database is the URL of the owner of the schema.
	database string

	heard *bustest.Listener // lifecycle events
	sent  int
}

// newWorld starts a stack for the test; queues are optional.
func newWorld(t *testing.T, queues ...queuemanager.Queue) *world {
	t.Helper()
	return startWorld(t, stack.Options{Queues: queues})
}

// ruled starts a stack with a queue "default" under the rules, in which a node
// may be not ready for a second.
func ruled(t *testing.T, rules workload.Rules) *world {
	t.Helper()
	return startWorld(t, stack.Options{Rules: rules, NodeGrace: time.Second})
}

func startWorld(t *testing.T, o stack.Options) *world {
	t.Helper()
	cluster := shared.Use(t)
	level := zap.WarnLevel
	if os.Getenv("MUSTER_TEST_LOG") != "" {
		level = zap.DebugLevel
	}
	o.Cluster, o.Installed, o.Dir = cluster.Cluster, true, t.TempDir()
	if o.DatabaseURL == "" {
		o.DatabaseURL = databases.Database(t)
	}
	if o.Logger == nil {
		o.Logger = zaptest.NewLogger(t, zaptest.Level(level))
	}
	s, err := stack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{Stack: s, t: t, ctx: ctx, database: o.DatabaseURL, heard: bustest.New(t)}
	t.Cleanup(s.Stop)
	t.Cleanup(cancel)
	t.Cleanup(func() { stacktest.NoNodeIsOverCommitted(t, s) })
	t.Cleanup(w.report)
	// Of each workload the stream gives the last event, then all that follow;
	// nothing has been submitted yet, so none is missed.
	w.heard.Listen(ctx, s.Bus, bus.EventsStream, "muster.events.*.*")
	return w
}

// report prints what is known when the test has failed.
func (w *world) report() {
	if !w.t.Failed() {
		return
	}
	answer, err := w.Queries.Workloads(w.ctx, query.WorkloadsRequest{})
	encoded, _ := json.MarshalIndent(answer.Workloads, "", " ")
	w.t.Logf("workloads: %s %v", encoded, err)
	for _, pod := range w.pods("") {
		w.t.Logf("pod %s: %s on %q, gates %v, workload %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName,
			pod.Spec.SchedulingGates, pod.Labels[kube.WorkloadLabel])
	}
}

// nodes adds nodes and waits until queue-manager knows them.
func (w *world) nodes(group string, count int, resources ...string) {
	w.t.Helper()
	if err := w.AddNodes(w.ctx, group, count, resources...); err != nil {
		w.t.Fatal(err)
	}
	w.until("nodes of group "+group+" are known", func() bool {
		known := 0
		for _, n := range w.knownNodes() {
			if n.Ready && strings.HasPrefix(n.Name, w.Pool+"-"+group+"-") {
				known++
			}
		}
		return known >= count
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

// untilPods is until for what lists pods. A list costs the API server, which all tests share,
// more than a query costs queue-manager.
func (w *world) untilPods(what string, met func() bool) {
	w.t.Helper()
	stacktest.Until(w.t, 3*stacktest.Often, patience, what, met)
}

// publish sends a submission; the id is unique unless given.
func (w *world) publish(queue, id string, manifest []byte) workload.ID {
	w.t.Helper()
	if id == "" {
		w.sent++
		id = fmt.Sprintf("submission-%d", w.sent)
	}
	envelope := event.Envelope{
		SpecVersion: event.SpecVersion, ID: id, Source: w.Pool, Type: event.SubmitType,
		DataContentType: "application/json", Data: manifest,
	}
	if !json.Valid(manifest) {
		text, err := json.Marshal(string(manifest))
		if err != nil {
			w.t.Fatal(err)
		}
		envelope.DataContentType, envelope.Data = "application/yaml", text
	}
	encoded, err := envelope.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.publishRaw(queue, encoded)
	return event.WorkloadID(w.Pool, id)
}

func (w *world) publishRaw(queue string, message []byte) {
	w.t.Helper()
	published, err := w.Bus.PublishEncoded(event.SubmitSubject(queue), event.NewID(), message, 0)
	if err == nil {
		err = published.Wait(w.ctx)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// submit submits a manifest to the queue "default".
func (w *world) submit(manifest string) workload.ID {
	w.t.Helper()
	return w.publish("default", "", []byte(manifest))
}

func (w *world) cancel(id workload.ID) {
	w.t.Helper()
	stacktest.Cancel(w.t, w.Stack, id)
}

// await returns the first event, seen or to come, that matches.
func await[P event.Payload](w *world, what string, matches func(P) bool) P {
	w.t.Helper()
	return bustest.Await(w.heard, patience, what, matches, nil)
}

// reaches waits until the workload has been in the phase.
func (w *world) reaches(id workload.ID, phase workload.Phase) *event.WorkloadChanged {
	w.t.Helper()
	return await(w, fmt.Sprintf("workload %s %s", id, phase), func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == phase
	})
}

// waits waits until the workload has been waiting for a reason of the kind.
func (w *world) waits(id workload.ID, kinds ...workload.ReasonKind) *workload.Reason {
	w.t.Helper()
	return await(w, fmt.Sprintf("workload %s waiting because of %v", id, kinds), func(e *event.WorkloadChanged) bool {
		if e.ID != id || e.Phase != workload.Queued || e.Reason == nil {
			return false
		}
		kind := e.Reason.Kind
		if kind == workload.ReasonNeverFits && e.Reason.Shortage != nil && !slices.Contains(kinds, kind) {
			kind = workload.ReasonFit // all nodes together have fewer places than the gang asks for
		}
		return slices.Contains(kinds, kind)
	}).Reason
}

// released waits until the workload holds nothing any more.
func (w *world) released(id workload.ID) {
	w.t.Helper()
	w.until(fmt.Sprintf("workload %s holds nothing", id), func() bool {
		record := w.one(id)
		return record.Phase.Final() && !record.Holding
	})
}

func (w *world) one(id workload.ID) workload.Record {
	w.t.Helper()
	return stacktest.Workload(w.t, w.Stack, id)
}

// pods lists, uncached, the pods of a workload, or of all of this stack, in the namespaces of
// the stack.
func (w *world) pods(id workload.ID) []corev1.Pod {
	w.t.Helper()
	options := metav1.ListOptions{LabelSelector: kube.ClusterLabel + "=" + w.Pool}
	if id != "" {
		options.LabelSelector = kube.WorkloadLabel + "=" + string(id)
	}
	var pods []corev1.Pod
	for _, namespace := range w.Namespaces() {
		list, err := w.Kube.CoreV1().Pods(namespace).List(w.ctx, options)
		if err != nil {
			w.t.Fatal(err)
		}
		pods = append(pods, list.Items...)
	}
	return pods
}

// objects lists, uncached, the names of a workload's Ray objects.
func (w *world) objects(id workload.ID) []string {
	w.t.Helper()
	var names []string
	for _, resource := range []string{"rayclusters", "rayjobs", "rayservices"} {
		list, err := w.Dynamic.Resource(ray.Resource(resource)).
			List(w.ctx, metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, resource+"/"+item.GetName())
		}
	}
	return names
}

// nothingOf checks that nothing of a workload exists in Kubernetes.
func (w *world) nothingOf(id workload.ID) {
	w.t.Helper()
	if objects := w.objects(id); len(objects) > 0 {
		w.t.Errorf("of workload %s there are %v", id, objects)
	}
	if pods := w.pods(id); len(pods) > 0 {
		w.t.Errorf("of workload %s there are %d pods", id, len(pods))
	}
}

// asPlanned checks that every pod of a running workload is on a reserved node,
// as many of each set as planned there.
func (w *world) asPlanned(id workload.ID) {
	w.t.Helper()
	planned, got := map[string]int{}, map[string]int{}
	for _, p := range w.one(id).Placements {
		if p.PodSet != "submitter" {
			planned[p.PodSet+" on "+p.Node] += p.Pods
		}
	}
	for _, pod := range w.pods(id) {
		if set := pod.Labels[kube.PodSetLabel]; set != "submitter" {
			got[set+" on "+pod.Spec.NodeName]++
		}
	}
	if fmt.Sprint(planned) != fmt.Sprint(got) {
		w.t.Errorf("workload %s: planned %v, pods are %v", id, planned, got)
	}
}

// redelivered returns how many messages are being delivered again.
func (w *world) redelivered(stream string) int {
	w.t.Helper()
	count, err := w.Bus.Redelivered(w.ctx, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	return count
}
