package state

import (
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// A gang with a range starts with the workers for which there is room, and its command has
// their number. A new leader finds it at that size, it grows when its owner asks for more,
// and a new attempt is for all workers again.
func TestAGangStartsWithFewerWorkers(t *testing.T) {
	t.Parallel()
	workers := podSet("workers", workload.RoleWorker, 5)
	workers.MinCount = 2
	s := newStageOf(t, workload.Rules{}, 2, workers)
	sized := func(count, resized int) {
		t.Helper()
		if got := s.gang().PodSets[1]; got.Count != count || got.Resized != resized || got.MinCount != 2 {
			t.Fatalf("the workers are %+v, want %d, resized by %d", got, count, resized)
		}
	}
	s.is(workload.Queued, workload.ReasonNeverFits)
	sized(5, 0)
	s.node("n2", nil)
	s.node("n3", nil)
	s.step(0)
	s.is(workload.Admitted, "")
	s.has(3)
	sized(3, -2)
	command := s.commanded()
	if command == nil || command.PodSets[1].Count != 3 || command.PodSets[1].AtStart() != 3 || len(command.Placements) != 4 {
		t.Fatalf("commanded %+v", command)
	}
	s.replaceLeader()
	s.is(workload.Admitted, "")
	s.has(3)
	s.created(true)
	s.is(workload.Running, "")
	s.sizes(3)
	s.has(3)
	s.node("n4", nil)
	s.sizes(4)
	s.has(4)
	sized(4, -1)
	s.run()
	s.removeNode(s.place("headgroup"))
	s.is(workload.Evicting, workload.ReasonNodeLost)
	for _, node := range []string{"n0", "n1", "n2", "n3"} {
		s.removeNode(node)
	}
	s.released()
	s.step(0)
	s.is(workload.Queued, "")
	sized(5, 0)
}
