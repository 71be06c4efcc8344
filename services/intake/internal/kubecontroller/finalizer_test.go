package kubecontroller

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
)

// guarded is a cluster where intake may not patch objects until it gets the right.
type guarded struct {
	*crowd
	granted atomic.Bool
}

func (g *guarded) SetFinalizer(ctx context.Context, object *unstructured.Unstructured, there bool) error {
	if !g.granted.Load() {
		return apierrors.NewForbidden(key.Resource.GroupResource(), object.GetName(), nil)
	}
	g.change(Key{Resource: key.Resource, Namespace: object.GetNamespace(), Name: object.GetName()}, func(o *unstructured.Unstructured) {
		o.SetFinalizers([]string{kube.WorkloadFinalizer})
	})
	return g.crowd.SetFinalizer(ctx, object, there)
}

// TestAnObjectThatIntakeMayNotWriteHasAnEvent: an object in a namespace without rights has one
// event, however often intake tries, and is submitted once intake has the right.
func TestAnObjectThatIntakeMayNotWriteHasAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		g := &guarded{crowd: w}
		w.controller.SetCluster(g)
		w.run(t, func() {
			k := w.addIn("elsewhere", "one", "", nil)
			w.change(k, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			time.Sleep(time.Hour)
			if waits := w.controller.Forbidden(); waits != 1 {
				t.Errorf("%d objects count as forbidden, want 1", waits)
			}
			g.granted.Store(true)
			time.Sleep(time.Minute)
			if waits := w.controller.Forbidden(); waits != 0 {
				t.Errorf("with the right, %d objects count as forbidden, want 0", waits)
			}
		})
		if want := []string{"event one: MusterNotServed", "finalizer one: true", "annotations one: queued ", "event one: MusterQueued"}; !slices.Equal(w.writes, want) {
			t.Errorf("writes are %q, want %q", w.writes, want)
		}
		if w.submitted["one"].IsZero() {
			t.Error("with the right, the object is not submitted")
		}
	})
}
