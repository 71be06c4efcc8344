package kubecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

var key = Key{Resource: resources()[3], Namespace: "team", Name: "one"}

// suspendedCluster is a suspended RayCluster with the controller's finalizer.
func suspendedCluster() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": map[string]any{
			"namespace": "team", "name": "one", "uid": "u", "labels": map[string]any{"muster.dev/queue-name": "default"},
			"finalizers": []any{finalizer},
		},
		"spec": map[string]any{"suspend": true, "headGroupSpec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "ray", "image": "ray", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}},
		}}}},
	}}
}

// lossy is a cluster with one object, a bus that loses the first messages, and
// queue-manager.
type lossy struct {
	Cluster
	mu                   sync.Mutex
	object               *unstructured.Unstructured
	loses                int
	unanswered           int // submissions that are stored, whose acknowledgement is lost
	submissions, cancels []time.Time
	sequence             uint64
	record               *workload.Record
	questions            int      // for the record
	events               []string // as type reason: message
	annotated            map[string]string
	statuses             int                               // how often one was written
	refusesStatus        func(status map[string]any) error // nil to refuse none
	uid                  string                            // of the object of that name in the API server
	uidErr               error                             // the first answer to the question for it
}

func (l *lossy) Object(Key) *unstructured.Unstructured {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.object == nil {
		return nil
	}
	return l.object.DeepCopy()
}

func (l *lossy) SetFinalizer(_ context.Context, _ *unstructured.Unstructured, there bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there {
		return errors.New("it has the finalizer")
	}
	l.object = nil
	return nil
}

func (l *lossy) Unwatched(context.Context, Key) (*unstructured.Unstructured, error) { return nil, nil }

func (l *lossy) Annotate(_ context.Context, _ *unstructured.Unstructured, annotations map[string]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.annotated == nil {
		l.annotated = map[string]string{}
	}
	maps.Copy(l.annotated, annotations)
	return nil
}

func (l *lossy) RecordEvent(_ context.Context, _ *unstructured.Unstructured, warning bool, reason, message string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := "Normal"
	if warning {
		kind = "Warning"
	}
	l.events = append(l.events, kind+" "+reason+": "+message)
	return nil
}

func (l *lossy) ReplaceStatus(_ context.Context, _ *unstructured.Unstructured, status map[string]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses++
	if l.refusesStatus != nil {
		if err := l.refusesStatus(status); err != nil {
			return err
		}
	}
	l.object.Object["status"] = status
	return nil
}

func (l *lossy) WriteStatus(_ context.Context, _ *unstructured.Unstructured, status map[string]any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	content, err := json.Marshal(status)
	if err != nil {
		return err
	}
	var merged map[string]any
	if err := json.Unmarshal(content, &merged); err != nil {
		return err
	}
	l.object.Object["status"] = merged
	return nil
}

func (l *lossy) Submit(_ context.Context, _, _ string, s *event.WorkloadSubmitted) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.submissions = append(l.submissions, time.Now())
	if len(l.submissions) > l.loses {
		l.record = &workload.Record{Workload: s.Workload, Phase: workload.Queued}
	}
	l.sequence++
	if len(l.submissions) <= l.unanswered {
		l.object = nil // and its object is removed meanwhile
		return 0, errors.New("no acknowledgement")
	}
	return l.sequence, nil
}

func (l *lossy) Cancel(context.Context, string, string, *event.WorkloadCancel) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancels = append(l.cancels, time.Now())
	if len(l.cancels) > l.loses && l.record != nil {
		l.record.CancelRequested = true
	}
	l.sequence++
	return l.sequence, nil
}

func (l *lossy) Records(context.Context, []workload.ID) ([]workload.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.questions++
	if l.record == nil {
		return nil, nil
	}
	return []workload.Record{*l.record}, nil
}

// play runs a controller for a span of simulated time.
func play(t *testing.T, l *lossy, span time.Duration, meanwhile func(*Controller)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := New(Options{Cluster: "c", Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: zap.NewNop()}, l)
	d.SetCluster(l)
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	if meanwhile != nil {
		meanwhile(d)
	} else {
		d.Enqueue(key)
	}
	time.Sleep(span) // of the bubble's clock
	cancel()
	running.Wait()
}

// TestALostSubmissionIsRepeated: an unanswered submission is repeated, with growing
// pauses.
func TestALostSubmissionIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: suspendedCluster(), loses: 3}
		play(t, l, time.Minute, nil)
		if len(l.submissions) != 4 || l.record == nil {
			t.Errorf("it was submitted %d times, and queue-manager has %v; want 4 times, until it has it", len(l.submissions), l.record)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: suspendedCluster(), loses: 1 << 20}
		play(t, l, 2*time.Hour, nil)
		if n := len(l.submissions); n < 25 || n > 45 {
			t.Errorf("without an answer it was submitted %d times in two hours; want about one in 4 minutes", n)
		}
	})
}

// TestWhatHasNoAnswerIsRepeatedWhenStreamsAreLost: after the streams were recreated,
// unanswered messages are repeated at once.
func TestWhatHasNoAnswerIsRepeatedWhenStreamsAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: suspendedCluster(), loses: 1 << 20}
		play(t, l, time.Second, func(d *Controller) {
			d.Enqueue(key)
			time.Sleep(time.Hour)
			l.mu.Lock()
			l.loses = 0
			l.mu.Unlock()
			d.RepublishUnanswered()
		})
		if l.record == nil {
			t.Error("it waits for its time although the streams were recreated")
		}
	})
}

// TestWhatWasPurgedIsRepeated: an unanswered message that is not in the stream any more
// is repeated within seconds, a bounded number of times, because a message that
// queue-manager has dead-lettered leaves the stream, too.
func TestWhatWasPurgedIsRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ahead       int // from the last submission to the first message that the stream has
		least, most int // submissions of a minute
	}{
		"it is there": {0, 0, 1},
		"it is gone":  {1, lostMost, lostMost + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lossy{object: suspendedCluster(), loses: 1 << 20}
				before := 0
				play(t, l, time.Second, func(d *Controller) {
					d.Enqueue(key)
					time.Sleep(time.Hour) // its pauses are of minutes by now
					l.mu.Lock()
					before = len(l.submissions)
					l.mu.Unlock()
					for range 12 {
						l.mu.Lock()
						first := l.sequence + uint64(c.ahead)
						l.mu.Unlock()
						d.RepublishLost(first)
						time.Sleep(5 * time.Second)
					}
				})
				if n := len(l.submissions) - before; n < c.least || n > c.most {
					t.Errorf("it was submitted %d times in a minute, want %d to %d", n, c.least, c.most)
				}
			})
		})
	}
}

// TestALostCancellationIsRepeated: the cancellation of a deleted object is repeated until
// queue-manager confirms it, with the finalizer or after its removal.
func TestALostCancellationIsRepeated(t *testing.T) {
	t.Parallel()
	deleted := func(l *lossy) {
		now := time.Now().UTC().Format(time.RFC3339)
		l.object.Object["metadata"].(map[string]any)["deletionTimestamp"] = now
	}
	for name, remove := range map[string]func(*lossy){"deleted": deleted, "gone": func(l *lossy) { l.object = nil }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lossy{object: suspendedCluster()}
				play(t, l, time.Minute, func(d *Controller) {
					d.Enqueue(key)
					time.Sleep(time.Minute)
					l.mu.Lock()
					l.loses = 3
					remove(l)
					l.mu.Unlock()
					d.Enqueue(key)
				})
				if l.record == nil || !l.record.CancelRequested || len(l.cancels) != 4 {
					t.Errorf("it was cancelled %d times, and queue-manager has %+v; want 4 times, until it has heard it", len(l.cancels), l.record)
				}
				if l.object != nil {
					t.Error("the object stays although queue-manager has heard of its deletion")
				}
			})
		})
	}
}

// TestALostCancellationOfAnAppWrapperIsRepeated: the cancellation of a deleted AppWrapper
// is repeated until queue-manager confirms it; the finalizer stays until nothing is left.
func TestALostCancellationOfAnAppWrapperIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wrapper := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
			"metadata": map[string]any{
				"namespace": "team", "name": "one", "uid": "u", "labels": map[string]any{"muster.dev/queue-name": "default"},
				"finalizers": []any{finalizer}, "deletionTimestamp": time.Now().UTC().Format(time.RFC3339),
			},
			"spec": map[string]any{"components": []any{map[string]any{"template": suspendedCluster().Object}}},
		}}
		running := &workload.Record{Workload: workload.Workload{ID: "w", Queue: "default"}, Phase: workload.Running}
		l := &lossy{object: wrapper, loses: 3, record: running}
		wrappers := Key{Resource: resources()[0], Namespace: "team", Name: "one"}
		play(t, l, time.Second, func(d *Controller) {
			d.Enqueue(wrappers)
			time.Sleep(time.Minute)
			l.mu.Lock()
			if !running.CancelRequested || len(l.cancels) != 4 {
				t.Errorf("it was cancelled %d times; want 4 times, until queue-manager has heard it", len(l.cancels))
			}
			if l.object == nil {
				t.Error("the AppWrapper is gone although its pods are not")
			}
			running.Phase = workload.Cancelled
			ended := *running
			ended.ID = d.ID("u")
			l.mu.Unlock()
			d.Changed(&event.WorkloadChanged{Record: ended})
		})
		if l.object != nil {
			t.Error("the AppWrapper stays although nothing of it is left")
		}
	})
}
