package kubecontroller

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// UID implements Cluster: what the API server has beside the object that the cache shows.
func (l *lossy) UID(context.Context, Key) (string, error) {
	err := l.uidErr
	l.uidErr = nil
	return l.uid, err
}

// TestTheWorkloadOfAVanishedObjectIsCancelled: what runs elsewhere for an object that is gone ends,
// unless the API server has the object all the same.
func TestTheWorkloadOfAVanishedObjectIsCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uid       string // in the API server
		kind      string
		requested bool
		cancels   int
	}{
		"it is gone":                   {"", workload.KindRayCluster, false, 1},
		"another one has its name":     {"v", workload.KindRayCluster, false, 1},
		"the cache does not show it":   {"u", workload.KindRayCluster, false, 0},
		"it is being cancelled":        {"", workload.KindRayCluster, true, 0},
		"a kind that this cannot read": {"", workload.KindAppWrapper, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lossy{uid: c.uid}
			record := placedIn("west", workload.Running)
			record.Kind, record.CancelRequested = c.kind, c.requested
			d := New(Options{Cluster: "c", Logger: zap.NewNop(), Placed: func(context.Context) ([]workload.Record, error) {
				return []workload.Record{*record}, nil
			}}, l)
			d.SetCluster(l)
			d.Resync(t.Context())
			if len(l.cancels) != c.cancels {
				t.Errorf("cancelled %d times, want %d", len(l.cancels), c.cancels)
			}
		})
	}
}

// TestWhatIsRefusedForOneKeepsNoOtherRunning: but where nothing answers, no more is asked.
func TestWhatIsRefusedForOneKeepsNoOtherRunning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		cancels int
	}{
		"refused by the API server": {apierrors.NewForbidden(ray.Resource("rayclusters").GroupResource(), "one", nil), 1},
		"refused by queue-manager":  {&query.ProblemError{}, 1},
		"no answer":                 {errors.New("no answer"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &lossy{uidErr: c.err}
			record := placedIn("west", workload.Running)
			d := New(Options{Cluster: "c", Logger: zap.NewNop(), Placed: func(context.Context) ([]workload.Record, error) {
				return []workload.Record{*record, *record}, nil
			}}, l)
			d.SetCluster(l)
			if err := d.cancelVanished(t.Context()); !errors.Is(err, c.err) || len(l.cancels) != c.cancels {
				t.Errorf("cancelled %d times, want %d; error %v", len(l.cancels), c.cancels, err)
			}
		})
	}
}
