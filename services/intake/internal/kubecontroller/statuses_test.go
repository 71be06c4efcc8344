package kubecontroller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestSilenceIsThatOfSome: what has no answer keeps no other from being asked about and marks none,
// but where nothing answers, few questions are asked, and all are marked.
func TestSilenceIsThatOfSome(t *testing.T) {
	t.Parallel()
	const parts = 6
	for name, c := range map[string]struct {
		silent    func(part int) bool
		questions int // of each round
		stale     int // parts
	}{
		"all answer":       {func(int) bool { return false }, parts, 0},
		"the first do not": {func(part int) bool { return part < 2 }, parts, 2},
		"none answers":     {func(int) bool { return true }, mostSilent, parts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				questions, rounds := 0, 0
				d := New(Options{Cluster: "c", Logger: zap.NewNop(), Statuses: func(_ context.Context, ids []workload.ID) ([]query.HomeStatus, error) {
					questions++
					if part, err := strconv.Atoi(string(ids[0])); err != nil || c.silent(part/query.MostHomeStatuses) {
						return nil, errors.Join(err, errors.New("no answer"))
					}
					return nil, nil
				}}, &lossy{})
				for i := range parts * query.MostHomeStatuses {
					id := workload.ID(fmt.Sprintf("%05d", i))
					d.tracked[id] = &tracked{key: key, record: placedIn("west", workload.Running)}
				}
				for began := time.Now(); time.Since(began) < time.Minute; rounds++ {
					d.askStatuses(t.Context())
					time.Sleep(staleAfter / 2)
				}
				stale := 0
				for _, k := range d.tracked {
					if !k.mirrored.stale.IsZero() {
						stale++
					}
				}
				if want := c.stale * query.MostHomeStatuses; stale != want || questions != rounds*c.questions {
					t.Errorf("%d are marked, want %d; %d questions in %d rounds, want %d in each", stale, want, questions, rounds, c.questions)
				}
				d.marks.ShutDown()
				d.queue.ShutDown()
			})
		})
	}
}
