package suite

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

func (w *world) submitMany(t *testing.T, count int) {
	t.Helper()
	for range count {
		w.submitDrawn(t)
	}
}

// unended counts the gangs of all runs up to the given one that have not come to their
// end.
func (w *world) unended(run int) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.submitted {
		if g.run <= run && !g.phase.Final() {
			count++
		}
	}
	return count
}

func (w *world) gangsOf(run int) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.submitted {
		if g.run == run {
			count++
		}
	}
	return count
}

// logLoad logs what the gangs of a run met beside the fault.
func (w *world) logLoad(t *testing.T, number, run int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	gangs, preempted, grew := 0, 0, 0
	for _, g := range w.submitted {
		if g.run != run {
			continue
		}
		gangs++
		if g.preempted {
			preempted++
		}
		if g.grew {
			grew++
		}
	}
	t.Logf("run %d: of %d gangs, %d were evicted by preemption, and %d grew", number, gangs, preempted, grew)
}

// dispatched reports whether there are objects of a gang: a fault must fall into
// work.
func (w *world) dispatched() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.submitted {
		if g.phase == workload.Dispatched || g.phase == workload.Running {
			return true
		}
	}
	return false
}

var rayJobs = ray.Resource("rayjobs")

const (
	// removeTimeout bounds the removal of jobs that may be read, on a machine that is busy.
	removeTimeout = 2 * time.Minute
	// removeAtOnce is how many of them a request removes.
	removeAtOnce = 20
)

// removeJobs removes the finished jobs, so that the next installations do not see ever
// more of them.
func (w *world) removeJobs() error {
	ctx, cancel := context.WithTimeout(w.ctx, removeTimeout)
	defer cancel()
	jobs := w.kube.Resource(rayJobs).Namespace(w.access.Namespace)
	page := metav1.ListOptions{Limit: removeAtOnce}
	for { // KubeRay may have to see a job before it is gone
		if err := jobs.DeleteCollection(ctx, metav1.DeleteOptions{}, page); err != nil {
			return err
		}
		left, err := jobs.List(ctx, page)
		if err != nil || len(left.Items) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// anyDispatched waits until an object of the gangs has been created: the fault must
// fall into work.
func (w *world) anyDispatched(t *testing.T, ids []workload.ID) {
	t.Helper()
	w.until(t, "a gang is dispatched", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(ids, func(id workload.ID) bool {
			now := w.gangOf(id).phase
			return now != "" && now != workload.Queued && now != workload.Admitted
		})
	})
}
