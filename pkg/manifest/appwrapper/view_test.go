package appwrapper_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/spec/workload"
)

// Fields that the schema gives to every AppWrapper are no reason to write a status
// again; a change of what it says is.
func TestAStatusIsWrittenOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	ended := &workload.Record{Phase: workload.Succeeded, Attempt: 1, Times: workload.Times{Finished: now}}
	for _, version := range []string{appwrapper.V1beta1, appwrapper.V1beta2} {
		t.Run(version, func(t *testing.T) {
			view := appwrapper.View{Created: now, Record: ended, Now: now}
			status, changed := appwrapper.Status(version, map[string]any{"state": "Pending", "queuejobstate": "Init"}, view)
			if !changed {
				t.Fatal("nothing to write")
			}
			for _, field := range []string{"state", "queuejobstate", "owner"} {
				if status[field] == nil {
					status[field] = "else's"
				}
			}
			if again, changed := appwrapper.Status(version, status, view); changed {
				t.Errorf("it is written again:\n%v\n%v", status, again)
			}
			view.Record = &workload.Record{Phase: workload.Failed, Attempt: 1}
			if _, changed := appwrapper.Status(version, status, view); !changed {
				t.Error("a failure is not written")
			}
		})
	}
}

// Only one that has succeeded, and of which nothing holds places any more, can be
// too old.
func TestSucceededAt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		record workload.Record
		want   bool
	}{
		"succeeded":         {workload.Record{Phase: workload.Succeeded, Attempt: 1}, true},
		"pods are going":    {workload.Record{Phase: workload.Succeeded, Attempt: 1, Holding: true}, false},
		"failed":            {workload.Record{Phase: workload.Failed, Attempt: 1}, false},
		"waits, not begun":  {workload.Record{Phase: workload.Queued, Attempt: 1}, false},
		"was cancelled":     {workload.Record{Phase: workload.Cancelled, Attempt: 1}, false},
		"evicted, is going": {workload.Record{Phase: workload.Evicting, Attempt: 1, Holding: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			status, _ := appwrapper.Status(appwrapper.V1beta2, nil, appwrapper.View{Created: now, Record: &c.record, Now: now})
			at, succeeded := appwrapper.SucceededAt(status)
			if succeeded != c.want || succeeded && !at.Equal(now) {
				t.Errorf("%s: %v at %s, want %v", name, succeeded, at, c.want)
			}
		})
	}
}
