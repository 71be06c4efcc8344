package app

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
)

// A dispatcher learns of a workload what its cluster has to know, also from a queue-manager of an
// earlier version.
func TestADispatcherAsksForTheTruth(t *testing.T) {
	t.Parallel()
	records := map[workload.ID]workload.Record{
		"here":      {Workload: workload.Workload{ID: "here"}, Phase: workload.Running, Cluster: "c", Attempt: 2, Holding: true},
		"elsewhere": {Workload: workload.Workload{ID: "elsewhere"}, Phase: workload.Cancelling, Cluster: "d", Attempt: 2, Holding: true},
		"ended":     {Workload: workload.Workload{ID: "ended"}, Phase: workload.Succeeded, Cluster: "c", Attempt: 1},
	}
	find := func(_ context.Context, r query.WorkloadsRequest) (answer query.WorkloadsAnswer, err error) {
		if record, known := records[r.ID]; known {
			answer.Workloads = append(answer.Workloads, record)
		}
		return answer, nil
	}
	for name, earlier := range map[string]bool{"of this version": false, "of an earlier version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Connect(t)
			var asked atomic.Int32
			err := query.Handle(t.Context(), b.Conn(), query.WorkloadsSubject, func(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
				asked.Add(1)
				return find(ctx, r)
			})
			if err == nil && !earlier {
				err = query.HandleTruth(t.Context(), b.Conn(), find)
			}
			if err != nil {
				t.Fatal(err)
			}
			truth := truthOf(b, "c")
			for id, want := range map[workload.ID]*workload.Record{
				"here":      {Workload: workload.Workload{ID: "here"}, Phase: workload.Running, Cluster: "c", Attempt: 2, Holding: true},
				"elsewhere": {Workload: workload.Workload{ID: "elsewhere"}, Phase: workload.Cancelling, Attempt: 2},
				"ended":     {Workload: workload.Workload{ID: "ended"}, Phase: workload.Succeeded, Attempt: 1},
				"unknown":   nil,
			} {
				got, err := truth(t.Context(), id)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("of %s it learns, with %v (-want +got):\n%s", id, err, diff)
				}
			}
			if got, want := asked.Load(), map[bool]int32{false: 0, true: 4}[earlier]; got != want {
				t.Errorf("it has asked for workloads of all clusters %d times, want %d", got, want)
			}
		})
	}
}

// Without a queue-manager a dispatcher learns nothing, which is an error and not that there is no
// such workload.
func TestWithoutAnAnswerThereIsNoTruth(t *testing.T) {
	t.Parallel()
	if record, err := truthOf(bustest.Connect(t), "c")(t.Context(), "w"); err == nil || record != nil {
		t.Errorf("it learns %+v, %v", record, err)
	}
}
