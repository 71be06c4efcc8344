package engine

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/relay"
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

// TestARecoveryNotesThatCommandsAreWithheld: the stream has a command of the lost time of a gang in
// quarantine, of which nothing is sent. The term that it is released in is to send its command.
func TestARecoveryNotesThatCommandsAreWithheld(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746576"
	now := time.Unix(1_800_000_000, 0).UTC()
	running := workload.Record{
		Workload: workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: "w"},
		Phase:    workload.Dispatched, Attempt: 1, Cluster: "c", Holding: true,
	}
	command := &event.GangCommand{Workload: id, Cluster: "c", Attempt: 1, State: event.Present, Queue: "q", Kind: running.Kind, Namespace: "n", Name: "w"}
	for name, c := range map[string]struct {
		level    state.QuarantineLevel
		commands []*event.GangCommand
		noted    int
	}{
		"it is in quarantine":      {state.QuarantineFrozen, []*event.GangCommand{command}, 1},
		"its places stay":          {state.QuarantineHeld, []*event.GangCommand{command}, 0},
		"its command was not lost": {state.QuarantineFrozen, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := &Step{Archive: nothingKnown{}, Logger: zap.NewNop(), State: state.New(1, state.Stored{
				MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"n"}}},
				Workloads: []state.StoredWorkload{{Order: 1, Record: running}},
			})}
			step.State.Quarantine(state.Quarantined{Workload: id, Level: c.level, Attempt: 1}, now)
			noted := 0
			_, err := Recovery{
				Step: step, Submissions: nothingKept{}, Now: now, Save: func([]bus.Delivery) error { return nil },
				Found: relay.Found{Commands: c.commands}, MayBeOlder: true, Distrust: func() error { noted++; return nil },
			}.Run(t.Context())
			sent := 0
			for _, m := range step.State.Flush().Messages {
				if m.Subject == event.DispatchSubject("c", id) {
					sent++
				}
			}
			if err != nil || noted != c.noted || (sent > 0) != (c.level == state.QuarantineHeld) {
				t.Errorf("%v, it is noted %d times, want %d; its command is sent %d times", err, noted, c.noted, sent)
			}
		})
	}
}
