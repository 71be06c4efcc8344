package trial_test

import (
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/trial"
)

// FuzzRead: whatever is read has a queue and a kind, and there is not too much of it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(cluster), "q")
	f.Add([]byte("---\nkind: RayJob\n---\n"), "")
	f.Fuzz(func(t *testing.T, content []byte, queue string) {
		all, err := trial.Read(content, trial.Options{Queue: queue})
		if err != nil {
			return
		}
		if len(all) == 0 || len(all) > query.MaxWhatIfChanges {
			t.Errorf("%d are read", len(all))
		}
		for _, w := range all {
			if w.Queue == "" || w.Kind == "" {
				t.Errorf("it has no queue or kind: %+v", w)
			}
		}
	})
}
