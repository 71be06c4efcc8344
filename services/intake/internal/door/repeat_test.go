package door

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

var key = Key{Resource: resources()[3], Namespace: "team", Name: "one"}

// held is a RayCluster that waits, with the door's finalizer.
func held() *unstructured.Unstructured {
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
	submissions, cancels []time.Time
	record               *workload.Record
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

func (l *lossy) Annotate(context.Context, *unstructured.Unstructured, map[string]string) error {
	return nil
}

func (l *lossy) Tell(context.Context, *unstructured.Unstructured, bool, string, string) error {
	return nil
}

func (l *lossy) Submit(_ context.Context, _ string, s *event.WorkloadSubmitted) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.submissions = append(l.submissions, time.Now())
	if len(l.submissions) > l.loses {
		l.record = &workload.Record{Workload: s.Workload, Phase: workload.Queued}
	}
	return nil
}

func (l *lossy) Cancel(context.Context, string, *event.WorkloadCancel) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancels = append(l.cancels, time.Now())
	if len(l.cancels) > l.loses && l.record != nil {
		l.record.CancelRequested = true
	}
	return nil
}

func (l *lossy) Record(context.Context, workload.ID) (*workload.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return nil, nil
	}
	record := *l.record
	return &record, nil
}

// play runs a door for a while of simulated time.
func play(t *testing.T, l *lossy, span time.Duration, meanwhile func(*Door)) {
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
		d.Look(key)
	}
	time.Sleep(span) // of the bubble's clock
	cancel()
	running.Wait()
}

// What was submitted and never taken is submitted again, ever more rarely.
func TestALostSubmissionIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: held(), loses: 3}
		play(t, l, time.Minute, nil)
		if len(l.submissions) != 4 || l.record == nil {
			t.Errorf("it was submitted %d times, and queue-manager has %v; want 4 times, until it has it", len(l.submissions), l.record)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: held(), loses: 1 << 20}
		play(t, l, 2*time.Hour, nil)
		if n := len(l.submissions); n < 25 || n > 45 {
			t.Errorf("without an answer it was submitted %d times in two hours; want about one in 4 minutes", n)
		}
	})
}

// When the streams were made again nothing waits for its time.
func TestWhatHasNoAnswerIsRepeatedWhenStreamsAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: held(), loses: 1 << 20}
		play(t, l, time.Second, func(d *Door) {
			d.Look(key)
			time.Sleep(time.Hour)
			l.mu.Lock()
			l.loses = 0
			l.mu.Unlock()
			d.RepeatSoon()
		})
		if l.record == nil {
			t.Error("it waits for its time although the streams were made again")
		}
	})
}

// The deletion of an object is told until queue-manager has heard it, whether the
// finalizer held the object or somebody removed it.
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
				l := &lossy{object: held()}
				play(t, l, time.Minute, func(d *Door) {
					d.Look(key)
					time.Sleep(time.Minute)
					l.mu.Lock()
					l.loses = 3
					remove(l)
					l.mu.Unlock()
					d.Look(key)
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
