package kubecontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// crowd is a cluster with many objects, and queue-manager with a record of each.
type crowd struct {
	Cluster
	controller *Controller
	writeTakes time.Duration // of an annotation or an event

	mu        sync.Mutex
	objects   map[Key]*unstructured.Unstructured
	records   map[workload.ID]*workload.Record
	writes    []string // of marks, as kind name: content
	submitted map[string]time.Time
	cancelled map[string]time.Time
	left      map[Key]*unstructured.Unstructured // the caches, and are there
	looks     int                                // for those
	questions int
	silent    bool // it does not answer questions about several
}

func newCrowd() *crowd {
	w := &crowd{
		objects: map[Key]*unstructured.Unstructured{}, records: map[workload.ID]*workload.Record{},
		submitted: map[string]time.Time{}, cancelled: map[string]time.Time{}, left: map[Key]*unstructured.Unstructured{},
	}
	w.controller = New(Options{Cluster: "c", Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: zap.NewNop()}, w)
	w.controller.SetCluster(w)
	return w
}

// run plays for a span of simulated time.
func (w *crowd) run(t *testing.T, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.controller.Run(ctx) })
	do()
	cancel()
	running.Wait()
}

// add creates an object, with queue-manager's record of it unless phase is empty.
func (w *crowd) add(name string, phase workload.Phase, reason *workload.Reason) Key {
	return w.addIn("team", name, phase, reason)
}

// addIn is add in a namespace.
func (w *crowd) addIn(namespace, name string, phase workload.Phase, reason *workload.Reason) Key {
	object := suspendedCluster()
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetUID(types.UID(name))
	k := Key{Resource: key.Resource, Namespace: namespace, Name: name}
	w.mu.Lock()
	w.objects[k] = object
	if id := w.controller.ID(name); phase != "" {
		unstructured.RemoveNestedField(object.Object, "spec", "headGroupSpec") // read for a submission only
		w.records[id] = &workload.Record{Workload: workload.Workload{ID: id, Queue: "default", Name: name}, Phase: phase, Reason: reason}
	}
	w.mu.Unlock()
	w.controller.Enqueue(k)
	return k
}

// becomes has queue-manager report another state of a workload.
func (w *crowd) becomes(name string, phase workload.Phase, reason *workload.Reason) {
	w.mu.Lock()
	record := *w.records[w.controller.ID(name)]
	record.Phase, record.Reason = phase, reason
	w.records[record.ID] = &record
	w.mu.Unlock()
	w.controller.Changed(&event.WorkloadChanged{Record: record})
}

func (w *crowd) change(k Key, change func(*unstructured.Unstructured)) {
	w.mu.Lock()
	changed := w.objects[k].DeepCopy()
	change(changed)
	w.objects[k] = changed
	w.mu.Unlock()
	w.controller.Enqueue(k)
}

func (w *crowd) Object(k Key) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	if object := w.objects[k]; object != nil {
		return object.DeepCopy()
	}
	return nil
}

// Unwatched returns what add has created, also after its end in the caches (leave).
func (w *crowd) Unwatched(_ context.Context, k Key) (*unstructured.Unstructured, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if object := w.left[k]; object != nil {
		return object.DeepCopy(), nil
	}
	return nil, nil
}

// leave has an object leave the caches, with what is then there of its name; nil for nothing.
func (w *crowd) leave(k Key, there *unstructured.Unstructured) {
	w.mu.Lock()
	delete(w.objects, k)
	w.left[k] = there
	w.mu.Unlock()
	w.controller.Enqueue(k)
}

func (w *crowd) note(kind, name, content string) {
	time.Sleep(w.writeTakes)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, fmt.Sprintf("%s %s: %s", kind, name, content))
}

func (w *crowd) Annotate(_ context.Context, object *unstructured.Unstructured, annotations map[string]string) error {
	w.note("annotations", object.GetName(), annotations[kube.StateKey]+" "+annotations[kube.ReasonKey])
	w.change(Key{Resource: key.Resource, Namespace: object.GetNamespace(), Name: object.GetName()}, func(o *unstructured.Unstructured) { o.SetAnnotations(annotations) })
	return nil
}

func (w *crowd) RecordEvent(_ context.Context, object *unstructured.Unstructured, _ bool, reason, _ string) error {
	w.note("event", object.GetName(), reason)
	return nil
}

func (w *crowd) SetFinalizer(_ context.Context, object *unstructured.Unstructured, there bool) error {
	w.note("finalizer", object.GetName(), fmt.Sprint(there))
	return nil
}

func (w *crowd) Records(_ context.Context, ids []workload.ID) (found []workload.Record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.questions++
	if w.silent && len(ids) > 1 {
		return nil, errors.New("no answer")
	}
	for _, id := range ids {
		if w.records[id] != nil {
			found = append(found, *w.records[id])
		}
	}
	return found, nil
}

func (w *crowd) Submit(_ context.Context, _, _ string, s *event.WorkloadSubmitted) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.submitted[s.Workload.Name] = time.Now()
	w.records[s.Workload.ID] = &workload.Record{Workload: s.Workload, Phase: workload.Queued}
	return 1, nil
}

func (w *crowd) Cancel(_ context.Context, _, _ string, cancel *event.WorkloadCancel) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelled[w.records[cancel.Workload].Name] = time.Now()
	return 1, nil
}
