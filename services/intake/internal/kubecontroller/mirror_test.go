package kubecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// movingCluster is suspendedCluster in the hands of no KubeRay.
func movingCluster() *unstructured.Unstructured {
	object := suspendedCluster()
	object.Object["spec"].(map[string]any)["managedBy"] = otherManager
	return object
}

// placedIn is a record of a workload that moves, as lossy submits it.
func placedIn(cluster string, phase workload.Phase) *workload.Record {
	return &workload.Record{Phase: phase, Cluster: cluster, Attempt: 1, Workload: workload.Workload{
		ID: event.WorkloadID("kubernetes/c", "u"), Kind: workload.KindRayCluster, Name: "one", Submitter: "kubernetes/c/ana", Life: workload.Life{Moves: true},
	}}
}

// mirrors plays a controller that asks for statuses, for a span of simulated time.
func mirrors(t *testing.T, l *lossy, statuses func([]workload.ID) ([]query.HomeStatus, error), span time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := New(Options{
		Cluster: "c", Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: zap.NewNop(),
		Statuses: func(_ context.Context, ids []workload.ID) ([]query.HomeStatus, error) { return statuses(ids) },
	}, l)
	d.SetCluster(l)
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	d.Enqueue(key)
	time.Sleep(span) // of the bubble's clock
	cancel()
	running.Wait()
}

// TestAStatusIsMirrored: the status of what runs in the place of an object is written on it once
// for each change, with its place. While there is no answer the last status stays, with a mark.
func TestAStatusIsMirrored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: movingCluster(), record: placedIn("west", workload.Running)}
		began, states := time.Now(), []string{"", "ready"}
		mirrors(t, l, func(ids []workload.ID) ([]query.HomeStatus, error) {
			if time.Since(began) > time.Minute {
				return nil, errors.New("no answer")
			}
			state := states[0]
			if time.Since(began) > 20*time.Second {
				state = states[1]
			}
			status, err := json.Marshal(map[string]any{"state": state})
			return []query.HomeStatus{{Workload: ids[0], Cluster: "west", Attempt: 1, Status: status}}, err
		}, 3*time.Minute)
		if diff := cmp.Diff(map[string]any{"state": "ready"}, l.object.Object["status"]); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		if l.statuses > 3 { // before the first answer, and one for each of the two
			t.Errorf("the status was written %d times", l.statuses)
		}
		if place := l.annotated[kube.PlaceKey]; !strings.HasPrefix(place, "west/one-") {
			t.Errorf("the place is %q", place)
		}
		since, err := time.Parse(time.RFC3339, l.annotated[kube.StaleKey])
		if err != nil || since.Sub(began) < 55*time.Second || since.Sub(began) > time.Minute {
			t.Errorf("the status is known to be stale since %q (%v), want since the last answer", l.annotated[kube.StaleKey], err)
		}
	})
}

// TestAStatusThatIsRefusedIsNotWrittenAgain: the object keeps the one that it has, and what else is
// written on it goes on. A failure of the API server is no refusal.
func TestAStatusThatIsRefusedIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		again bool
	}{
		"an unknown field": {apierrors.NewBadRequest("no such field"), false},
		"no right to it":   {apierrors.NewForbidden(ray.Resource("rayclusters").GroupResource(), "one", nil), false},
		"too large":        {apierrors.NewRequestEntityTooLargeError("3 MB"), false},
		"another process":  {apierrors.NewConflict(ray.Resource("rayclusters").GroupResource(), "one", nil), true},
		"a failure":        {apierrors.NewInternalError(errors.New("failed")), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				refuse := func(map[string]any) error { return c.err }
				l := &lossy{object: movingCluster(), record: placedIn("west", workload.Running), refusesStatus: refuse}
				mirrors(t, l, func(ids []workload.ID) ([]query.HomeStatus, error) {
					return []query.HomeStatus{{Workload: ids[0], Cluster: "west", Attempt: 1, Status: json.RawMessage(`{"state":"odd"}`)}}, nil
				}, time.Minute)
				if again, marked := l.statuses > 2, l.annotated[kube.StateKey] == kube.StateAdmitted; again != c.again || !marked {
					t.Errorf("written %d times, and the state is %q", l.statuses, l.annotated[kube.StateKey])
				}
			})
		})
	}
}

// TestTheEndOfARefusedStatusIsWritten: one that waits for a job at home sees its end.
func TestTheEndOfARefusedStatusIsWritten(t *testing.T) {
	t.Parallel()
	before := map[string]any{"jobDeploymentStatus": "Running"}
	for phase, want := range map[workload.Phase]map[string]any{
		workload.Succeeded: {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
		workload.Failed:    {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED"},
		workload.Running:   before,
		workload.Cancelled: before,
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			l := &lossy{object: movingCluster(), refusesStatus: func(status map[string]any) error {
				if status["odd"] != nil || phase == workload.Cancelled {
					return apierrors.NewBadRequest("no such field")
				}
				return nil
			}}
			l.object.SetKind(workload.KindRayJob)
			l.object.Object["status"] = before
			d := New(Options{Cluster: "c", Logger: zap.NewNop()}, l)
			d.SetCluster(l)
			k := tracked{record: placedIn("west", phase), mirrored: mirrored{
				asked: true, last: query.HomeStatus{Cluster: "west", Attempt: 1, Status: json.RawMessage(`{"jobDeploymentStatus":"Complete","odd":1}`)},
			}}
			if err := d.mirror(t.Context(), l.object, k.record.ID, k); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, l.object.Object["status"]); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMovedObjectStaysUntilNothingRuns: unlike an object whose own pods Kubernetes deletes with it.
func TestAMovedObjectStaysUntilNothingRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase workload.Phase
		stays bool
	}{
		"is cancelled": {workload.Cancelling, true},
		"has ended":    {workload.Cancelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				record := placedIn("west", c.phase)
				record.CancelRequested = true
				l := &lossy{object: movingCluster(), record: record}
				l.object.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
				mirrors(t, l, func([]workload.ID) ([]query.HomeStatus, error) { return nil, nil }, time.Minute)
				if stays := l.object != nil; stays != c.stays {
					t.Errorf("the object is there: %t", stays)
				}
			})
		})
	}
}

// TestTheStatusAtHome: what an object shows in each phase, with and without a status from its place.
func TestTheStatusAtHome(t *testing.T) {
	t.Parallel()
	const job, cluster, running = workload.KindRayJob, workload.KindRayCluster, `{"jobDeploymentStatus":"Running","jobStatus":"RUNNING","jobId":"j"}`
	type status = map[string]any
	for name, c := range map[string]struct {
		kind, status   string
		phase          workload.Phase
		attempt        int // of the status
		unasked, noted bool
		unplaced       bool
		want           status // nil when nothing is written
	}{
		"waits":                       {kind: job, status: running, phase: workload.Queued, attempt: 1, want: status{"jobDeploymentStatus": "Suspended"}},
		"admitted":                    {kind: job, phase: workload.Admitted, attempt: 1, want: status{"jobDeploymentStatus": "Initializing"}},
		"runs":                        {kind: job, status: running, phase: workload.Running, attempt: 1, want: status{"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "jobId": "j"}},
		"runs, before the answer":     {kind: job, phase: workload.Running, unasked: true},
		"admitted, before the answer": {kind: job, phase: workload.Admitted, unasked: true},
		"runs, and NATS has lost it":  {kind: job, phase: workload.Running, attempt: 1},
		"a status of before":          {kind: job, status: running, phase: workload.Admitted, want: status{"jobDeploymentStatus": "Initializing"}},
		"an unreadable status":        {kind: job, status: `[]`, phase: workload.Running, attempt: 1},
		"no status":                   {kind: job, status: `null`, phase: workload.Running, attempt: 1},
		"the end is seen":             {kind: job, status: `{"jobDeploymentStatus":"Complete","jobStatus":"STOPPED"}`, phase: workload.Failed, attempt: 1, want: status{"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}},
		"the end is not seen":         {kind: job, status: running, phase: workload.Succeeded, attempt: 1, want: status{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "jobId": "j"}},
		"the failure is not seen":     {kind: job, phase: workload.Failed, attempt: 1, want: status{"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "message": "why"}},
		"the end was written before":  {kind: job, phase: workload.Succeeded, noted: true},
		"it fails while it waits":     {kind: job, phase: workload.Failed, unplaced: true, want: status{"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "message": "why"}},
		"it failed before":            {kind: job, phase: workload.Failed, unplaced: true, noted: true},
		"cancelled while it waits":    {kind: job, phase: workload.Cancelled, unplaced: true, want: status{"jobDeploymentStatus": "Suspended"}},
		"a RayCluster that fails":     {kind: cluster, phase: workload.Failed, unplaced: true, want: status{"state": "suspended"}},
		"cancelled":                   {kind: job, status: running, phase: workload.Cancelled, attempt: 1, want: status{"jobDeploymentStatus": "Suspended"}},
		"cancelled long ago":          {kind: job, phase: workload.Cancelled, attempt: 1, noted: true},
		"a RayCluster that waits":     {kind: cluster, phase: workload.Queued, attempt: 1, want: status{"state": "suspended"}},
		"a RayCluster that starts":    {kind: cluster, phase: workload.Admitted, attempt: 1, want: status{}},
		"a RayCluster that runs":      {kind: cluster, status: `{"state":"ready"}`, phase: workload.Running, attempt: 1, want: status{"state": "ready"}},
		"a RayCluster that has ended": {kind: cluster, status: `{"state":"ready"}`, phase: workload.Failed, attempt: 1, want: status{"state": "suspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := placedIn("west", c.phase)
			record.Reason = &workload.Reason{Message: "why"}
			if c.unplaced {
				record.Cluster = ""
			}
			k := tracked{record: record, mirrored: mirrored{asked: !c.unasked, last: query.HomeStatus{Cluster: "west", Attempt: c.attempt, Status: json.RawMessage(c.status)}}}
			got, known := k.homeStatus(c.kind, c.noted)
			if diff := cmp.Diff(c.want, got); known != (c.want != nil) || known && diff != "" {
				t.Errorf("known: %t; status (-want +got):\n%s", known, diff)
			}
		})
	}
}

// TestAStatusOfOneThatWaitsIsWrittenOnce: not with each reason, and not by each process.
func TestAStatusOfOneThatWaitsIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotated string // by an earlier process
		writes    int
	}{"first seen": {"", 1}, "seen before": {string(workload.Queued), 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lossy{object: movingCluster(), record: placedIn("", workload.Queued)}
				if c.annotated != "" {
					l.object.SetAnnotations(map[string]string{kube.StateKey: c.annotated})
				}
				mirrors(t, l, func([]workload.ID) ([]query.HomeStatus, error) { return nil, errors.New("nothing is placed") }, 5*time.Minute)
				if l.statuses != c.writes {
					t.Errorf("the status was written %d times, want %d", l.statuses, c.writes)
				}
			})
		})
	}
}

// FuzzStatus reads statuses that another cluster may report. What is written is an object.
func FuzzStatus(f *testing.F) {
	f.Add([]byte(`{"jobDeploymentStatus":"Running"}`))
	f.Add([]byte(`[{"jobDeploymentStatus":1}]`))
	f.Fuzz(func(t *testing.T, status []byte) {
		for _, phase := range []workload.Phase{workload.Admitted, workload.Running, workload.Succeeded, workload.Failed} {
			k := tracked{record: placedIn("west", phase), mirrored: mirrored{asked: true, last: query.HomeStatus{Cluster: "west", Attempt: 1, Status: status}}}
			if got, known := k.homeStatus(workload.KindRayJob, false); known && got == nil {
				t.Errorf("%s: nothing is to be written", phase)
			}
		}
	})
}

// TestNothingIsStaleOfOneThatWaits: what ran in its place is gone, and nothing is asked.
func TestNothingIsStaleOfOneThatWaits(t *testing.T) {
	t.Parallel()
	for phase, want := range map[workload.Phase]string{workload.Running: "2026-01-01T00:00:00Z", workload.Queued: ""} {
		k := tracked{record: placedIn("west", phase), mirrored: mirrored{stale: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
		if got := k.staleText(true); got != want {
			t.Errorf("%s: stale since %q, want %q", phase, got, want)
		}
	}
}
