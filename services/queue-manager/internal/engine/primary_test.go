package engine

import (
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestARecoveryThatDidNotEndIsRepeated: a process dies when it has noted on which history of
// Postgres it writes, and has not found out yet what that has lost. The next one does.
func TestARecoveryThatDidNotEndIsRepeated(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	if _, err := b.ConfigureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := Options{Bus: b, Logger: zap.NewNop()}
	first, second := store.Lineage{System: "1", Timeline: 1}, store.Lineage{System: "1", Timeline: 2}
	for _, step := range []struct {
		name        string
		on          store.Lineage
		unrecovered bool
		ends        string // how: "dies" before it has recovered, "recovers", or "misses" a commit
	}{
		{"the first", first, false, "recovers"},
		{"the same again", first, false, "recovers"},
		{"another primary", second, true, "dies"},
		{"a process that knows nothing of it", second, true, "dies"},
		{"one that recovers", second, true, "recovers"},
		{"after it", second, false, "misses"},
		{"after a missing commit", second, true, "recovers"},
		{"at last", second, false, "recovers"},
		{"without a timeline", store.Lineage{}, false, "recovers"},
	} {
		unrecovered, err := notePrimary(t.Context(), o, step.on)
		if err != nil || unrecovered != step.unrecovered {
			t.Errorf("%s: unrecovered %t, %v; want %t", step.name, unrecovered, err, step.unrecovered)
		}
		switch step.ends {
		case "recovers":
			err = noteRecovered(t.Context(), o, step.on)
		case "misses":
			l := &leader{Options: o, memory: &Memory{}}
			l.noteMissingCommit(t.Context(), store.ErrCommitMissing)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
