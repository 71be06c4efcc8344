package reconcile

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

func TestNewWorkloadsGoFirstButNotForEver(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		waited time.Duration
		want   string
	}{
		{"at once", 0, "n1 n2 n3 n4 n5 n6 n7 n8 n9 o1 o2"},
		{"after a while", ordinaryWait, "n1 n2 n3 o1 n4 n5 n6 o2 n7 n8 n9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			l := newCreationsFirst()
			l.now = func() time.Time { return now }
			for _, id := range []workload.ID{"o1", "o2"} {
				l.Push(id)
			}
			for _, id := range []workload.ID{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"} {
				l.setNew(id, true)
				l.Push(id)
			}
			l.setNew("n9", false) // it keeps the place it has
			now = now.Add(test.waited)
			var order []string
			for l.Len() > 0 {
				order = append(order, string(l.Pop()))
			}
			if got := strings.Join(order, " "); got != test.want {
				t.Errorf("%s: order is %s, want %s", test.name, got, test.want)
			}
		})
	}
}
