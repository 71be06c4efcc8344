package security

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stormMost bounds the start of another tenant's job in a storm: most of it is the time of
// the API server, which shares a machine with all services here.
const stormMost = 2 * time.Minute

// A tenant changes an object as often as the API server takes it, up to a hundred times
// a second, creates and deletes objects without end, or has objects as large as it takes
// and changes these; another tenant's jobs start in time.
func TestStormsOfChangesDelayNoOtherTenant(t *testing.T) {
	t.Parallel()
	r := newRivals(t)
	r.attack("changes", 0)
	patch := func(name string) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			change := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/change": "%d"}}}`, i)
			_, err := r.changes.Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
			return err
		}
	}
	const (
		large = 1 << 20 // with what the API server adds to it, near the most that etcd takes
		many  = 5
	)
	storms := []struct {
		name  string
		pace  time.Duration
		again func(context.Context, int) error
	}{
		{"changes", 10 * time.Millisecond, patch("changes")},
		{"comes-and-goes", 20 * time.Millisecond, func(ctx context.Context, i int) error {
			name := fmt.Sprintf("short-%d", i)
			if _, err := r.attacker.Create(ctx, r.wrapper(name, 0), metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := r.changes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		}},
		{"large", 250 * time.Millisecond, func(ctx context.Context, i int) error { return patch(fmt.Sprintf("large-%d", i%many))(ctx, i) }},
	}
	for i := range many {
		r.attack(fmt.Sprintf("large-%d", i), large)
	}
	for i, storm := range storms {
		t.Run(storm.name, func(t *testing.T) {
			memory := heap()
			stop := r.storm(storm.pace, storm.again)
			after := []time.Duration{r.runs(storm.name+"-first", stormMost)}
			if i == 0 { // one storm lasts for two jobs
				after = append(after, r.runs(storm.name+"-second", stormMost))
			}
			grown, done := heap()-memory, stop()
			t.Logf("%s: %.1f rounds a second; the other tenant's jobs ran after %v; the heap grew by %d MB", storm.name, done, after, grown>>20)
			if done == 0 {
				t.Errorf("%s: no round of the storm was done", storm.name)
			}
			if grown > 256<<20 {
				t.Errorf("%s: the heap grew by %d MB, want 256 at most", storm.name, grown>>20)
			}
		})
	}
}
