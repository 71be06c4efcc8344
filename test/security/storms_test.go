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

// A tenant changes an object as often as the API server takes it, up to a hundred times
// a second, creates and deletes objects without end, or has objects as large as it takes
// and changes these; another tenant's jobs start in time.
func TestStormsOfChangesDelayNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRivals(t)
	r.attack("changes", 0)
	patch := func(name string) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			change := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/change": "%d"}}}`, i)
			_, err := r.attacker.Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
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
			if err := r.attacker.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		}},
		{"large", 50 * time.Millisecond, func(ctx context.Context, i int) error { return patch(fmt.Sprintf("large-%d", i%many))(ctx, i) }},
	}
	for i := range many {
		r.attack(fmt.Sprintf("large-%d", i), large)
	}
	for _, storm := range storms {
		t.Run(storm.name, func(t *testing.T) {
			memory := heap()
			stop := r.storm(storm.pace, storm.again)
			first := r.runs(storm.name + "-first")
			second := r.runs(storm.name + "-second")
			grown := heap() - memory
			t.Logf("%s: %.0f rounds a second; the other tenant's jobs ran after %s and %s; the heap grew by %d MB", storm.name, stop(), first, second, grown>>20)
			if grown > 256<<20 {
				t.Errorf("%s: the heap grew by %d MB, want 256 at most", storm.name, grown>>20)
			}
		})
	}
}
