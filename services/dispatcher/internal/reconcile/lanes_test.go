package reconcile

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/workload"
)

func TestNewWorkloadsGoFirstButNotAlways(t *testing.T) {
	t.Parallel()
	l := newLanes()
	for _, id := range []workload.ID{"o1", "o2"} {
		l.Push(id)
	}
	for _, id := range []workload.ID{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"} {
		l.setNew(id, true)
		l.Push(id)
	}
	l.setNew("n9", false) // it keeps the lane it waits in
	var order []string
	for l.Len() > 0 {
		order = append(order, string(l.Pop()))
	}
	if got, want := strings.Join(order, " "), "n1 n2 n3 n4 n5 n6 n7 o1 n8 n9 o2"; got != want {
		t.Errorf("order is %s, want %s", got, want)
	}
}
