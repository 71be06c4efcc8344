package kubecontroller

import (
	"fmt"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
)

// TestARemovedObjectIsFoundByItsName: the workloads of a name are those of its objects, of which a
// new one may have come before the end of the last, whatever else is tracked.
func TestARemovedObjectIsFoundByItsName(t *testing.T) {
	t.Parallel()
	c := New(Options{Cluster: "c", Logger: zap.NewNop()}, nil)
	defer c.queue.ShutDown()
	defer c.marks.ShutDown()
	for i := range 100 {
		c.track(workload.ID(fmt.Sprintf("other-%d", i)), fmt.Sprintf("uid-%d", i), Key{Namespace: "a", Name: fmt.Sprintf("other-%d", i)})
	}
	key := Key{Namespace: "a", Name: "one"}
	c.track("first", "uid-first", key)
	c.track("second", "uid-second", key)
	c.track("first", "uid-first", key) // again
	c.forget("first")
	if len(c.named[key]) != 1 || c.named[key][0] != "second" || c.tracked["first"] != nil {
		t.Errorf("of %s there is %v, want the second", key, c.named[key])
	}
	again, err := c.removed(t.Context(), key) // it was never submitted
	if err != nil || again != 0 {
		t.Errorf("removed: %v, %v", again, err)
	}
	c.forget("second") // again
	if len(c.tracked) != 100 || len(c.named) != 100 {
		t.Errorf("%d workloads and %d names are left, want 100 each", len(c.tracked), len(c.named))
	}
}
