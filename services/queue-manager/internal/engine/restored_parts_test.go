package engine

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What the streams have of ten thousand workloads is no single commit, and all that is known
// of a workload is judged together.
func TestWhatTheStreamsHaveIsRestoredInParts(t *testing.T) {
	t.Parallel()
	const workloads, size = 25, 10
	var ahead state.Ahead
	for i := range workloads {
		id := workload.ID(fmt.Sprintf("w%02d", i))
		record := workload.Record{Workload: workload.Workload{ID: id}}
		ahead.LastRecords = append(ahead.LastRecords, record)
		if i%2 == 0 {
			ahead.Lost = append(ahead.Lost, record)
		}
		ahead.Commands = append([]*event.GangCommand{{Workload: id, Attempt: 1}, {Workload: id, Attempt: 2}}, ahead.Commands...)
	}
	ahead.Commands = append(ahead.Commands, &event.GangCommand{Workload: "unknown"})
	of, records, lost, commands := map[workload.ID]int{}, 0, 0, 0
	for i, part := range parts(ahead, size) {
		ids := map[workload.ID]bool{}
		for _, record := range part.LastRecords {
			ids[record.ID] = true
		}
		for _, record := range part.Lost {
			ids[record.ID] = true
		}
		for _, command := range part.Commands {
			ids[command.Workload] = true
		}
		if len(ids) > size {
			t.Errorf("part %d is about %d workloads, want at most %d", i, len(ids), size)
		}
		for id := range ids {
			if before, ok := of[id]; ok {
				t.Errorf("workload %s is in the parts %d and %d", id, before, i)
			}
			of[id] = i
		}
		records, lost, commands = records+len(part.LastRecords), lost+len(part.Lost), commands+len(part.Commands)
	}
	if records != workloads || lost != 13 || commands != 2*workloads+1 {
		t.Errorf("the parts have %d records, %d lost and %d commands, want %d, 13 and %d", records, lost, commands, workloads, 2*workloads+1)
	}
}
