package gang_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// BenchmarkLargeGang is one look at a gang of 512 pods, each on a node of its own,
// half of which have been sent to their places.
func BenchmarkLargeGang(b *testing.B) {
	const size = 512
	command := &event.GangCommand{Attempt: 2, PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: size}}}
	var pods []gang.Pod
	sent := map[string]string{}
	for i := range size {
		node := fmt.Sprintf("node-%d", i)
		command.Placements = append(command.Placements, workload.Placement{PodSet: "workers", Node: node, Pods: 1})
		p := pod(fmt.Sprintf("workers-%d", i), "workers")
		p.UID = p.Name
		if pods = append(pods, p); i%2 == 0 {
			sent[p.UID] = node
		}
	}
	for b.Loop() {
		if displaced := gang.Displaced(command, pods, sent); len(displaced) > 0 {
			b.Fatalf("displaced are %d", len(displaced))
		}
		if pins := gang.Pins(command, pods, sent, nil); len(pins) != size/2 {
			b.Fatalf("pinned are %d", len(pins))
		}
	}
}
