package kubecontroller

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestNamespacesTakeTurns: an object waits for one object of each other namespace, no
// matter how many of them wait.
func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	d := New(Options{Logger: zap.NewNop()}, nil)
	defer d.queue.ShutDown()
	const many = 10_000
	for i := range many {
		d.Enqueue(Key{Namespace: "many", Name: fmt.Sprint(i)})
	}
	d.Enqueue(Key{Namespace: "b", Name: "first"})
	d.Enqueue(Key{Namespace: "many", Name: "0"}) // waits already
	d.Enqueue(Key{Namespace: "b", Name: "second"})
	d.Enqueue(Key{Namespace: "c", Name: "only"})
	var order []string
	for range 6 {
		key, _ := d.queue.Get()
		order = append(order, key.Namespace+"/"+key.Name)
		d.queue.Done(key)
	}
	if got, want := strings.Join(order, " "), "many/0 b/first c/only many/1 b/second many/2"; got != want {
		t.Errorf("order is %s, want %s", got, want)
	}
	for range many - 3 {
		key, _ := d.queue.Get()
		d.queue.Done(key)
	}
	if left := d.queue.Len(); left != 0 {
		t.Errorf("%d objects wait after all were taken", left)
	}
}

// TestMarksOfANamespaceWaitForNoOtherTenant: while objects of one namespace come and go
// without end, each in place of the last, the state of another one's job is the next thing
// but one that is written.
func TestMarksOfANamespaceWaitForNoOtherTenant(t *testing.T) {
	t.Parallel()
	d := New(Options{Logger: zap.NewNop()}, nil)
	defer d.queue.ShutDown()
	job := Key{Namespace: "honest", Name: "job"}
	d.track("job", "uid", job)
	const waiting, rounds = 1000, 100
	for i := range waiting {
		d.Enqueue(Key{Namespace: "storm", Name: fmt.Sprint(i)})
	}
	for round := range rounds {
		d.Changed(&event.WorkloadChanged{Record: workload.Record{Workload: workload.Workload{ID: "job"}, Phase: workload.Running}})
		for taken := 0; ; taken++ {
			key, _ := d.queue.Get()
			d.Enqueue(Key{Namespace: "storm", Name: fmt.Sprintf("%d-%d", round, taken)})
			d.queue.Done(key)
			if key == job {
				break
			}
			if taken > 1 {
				t.Fatalf("round %d: %d objects of the storm were taken, and the job still waits", round, taken+1)
			}
		}
	}
}
