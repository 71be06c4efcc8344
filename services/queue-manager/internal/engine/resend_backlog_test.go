package engine

import (
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestCommandsAreSentAgainOnlyAsNATSTakesThem: a term that sends all commands again puts no more than
// a few parts of them before what it decides meanwhile.
func TestCommandsAreSentAgainOnlyAsNATSTakesThem(t *testing.T) {
	t.Parallel()
	const gangs = 20 * resendLimit
	l := resendingLeader(gangs, &counting{commands: map[string]int{}})
	l.relay = relay.New(relay.Options{Logger: zap.NewNop()}) // it does not run, so nothing arrives in NATS
	l.resends.replace(l.state.CommandSubjects(func(string) bool { return true }), nil)
	committed := 0
	for range gangs / resendLimit {
		select {
		case <-l.resendsDue():
		default: // nothing has moved
			continue
		}
		before := len(l.resends.subjects)
		l.sendAgainIfDue()
		var messages []store.Outgoing
		for range before - len(l.resends.subjects) {
			committed++
			messages = append(messages, store.Outgoing{Seq: int64(committed), Subject: "muster.dispatch.c.w"})
		}
		l.relay.Hand(messages)
	}
	if most := resendBacklog + resendLimit; committed == 0 || committed > most {
		t.Errorf("%d commands are on their way at once, want some and at most %d", committed, most)
	}
	if l.resends.left() == nil {
		t.Error("no command is left to be sent again")
	}
}
