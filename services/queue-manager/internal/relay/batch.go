package relay

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// lastOfSubjects returns the last message of each subject, in order. The stream has
// no room for another. One that is sent again, because no answer confirmed that it was
// stored, must not come behind one that followed it.
func lastOfSubjects(messages []store.Outgoing) []store.Outgoing {
	last := make(map[string]int64, len(messages))
	for _, m := range messages {
		last[m.Subject] = m.Seq
	}
	kept := make([]store.Outgoing, 0, len(last))
	for _, m := range messages {
		if last[m.Subject] == m.Seq {
			kept = append(kept, m)
		}
	}
	return kept
}

// before returns how many messages of a batch come before those that are still due.
func before(batch, due []store.Outgoing) int {
	if len(due) == 0 {
		return len(batch)
	}
	return slices.IndexFunc(batch, func(m store.Outgoing) bool { return m.Seq == due[0].Seq })
}

// differing returns how many messages, from the first, have different subjects.
func differing(messages []store.Outgoing) int {
	seen := make(map[string]bool, len(messages))
	for i, m := range messages {
		if seen[m.Subject] {
			return i
		}
		seen[m.Subject] = true
	}
	return len(messages)
}

func commandIn(message []byte) (*event.GangCommand, error) {
	envelope, err := event.Parse(message)
	if err != nil {
		return nil, err
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		return nil, err
	}
	command, ok := payload.(*event.GangCommand)
	if !ok {
		return nil, fmt.Errorf("event %q is no command but %s", envelope.ID, envelope.Type)
	}
	return command, nil
}
