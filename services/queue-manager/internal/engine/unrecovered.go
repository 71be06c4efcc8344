package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// unrecoveredNote is in NATS, because the database may come back older once more.
const unrecoveredNote = "unrecovered"

// mostUnrecovered bounds the ids in the note, in bytes: all notes together have 128 KiB.
const mostUnrecovered = 64 << 10

// unrecovered returns what the terms before could not recover.
func (l *leader) unrecovered(ctx context.Context) (before relay.Unrecovered, err error) {
	note, err := l.Bus.Note(ctx, unrecoveredNote)
	if err != nil || note == "" {
		return before, err
	}
	if err := json.Unmarshal([]byte(note), &before); err != nil {
		l.Logger.Warn("cannot read which workloads are still to be recovered; ignoring the note", zap.Error(err))
		return relay.Unrecovered{}, nil // of a later version
	}
	return before, nil
}

// noteUnrecovered has the next terms look for the workloads again of which this one may write
// nothing. It comes before the relay of the term, which moves the watermarks past them.
func (l *leader) noteUnrecovered(ctx context.Context, before, now relay.Unrecovered) error {
	if len(before.Workloads) == 0 && len(now.Workloads) == 0 {
		return nil
	}
	note := ""
	if len(now.Workloads) > 0 {
		l.Logger.Error("cannot recover workloads that are in quarantine; trying again when they are released", zap.Int("workloads", len(now.Workloads)))
		if kept := bounded(now.Workloads, mostUnrecovered); len(kept) < len(now.Workloads) {
			l.Logger.Error("cannot note all workloads that are still to be recovered; cancel and submit these again when they are released", zap.Any("workloads", now.Workloads[len(kept):]))
			now.Workloads = kept
		}
		encoded, err := json.Marshal(now)
		if err != nil {
			return fmt.Errorf("encode the note of %d workloads that are still to be recovered: %w", len(now.Workloads), err)
		}
		note = string(encoded)
	}
	for range noteTries { // another service that configures the stream may overwrite it
		if err := l.Bus.SetNote(ctx, unrecoveredNote, note); err != nil {
			return err
		}
		if noted, err := l.Bus.Note(ctx, unrecoveredNote); err != nil || noted == note {
			return err
		}
	}
	return fmt.Errorf("note %s: overwritten %d times", unrecoveredNote, noteTries)
}

// noteTries is how often a note is stored that others overwrite.
const noteTries = 3

// bounded returns the first workloads, as many as have at most that number of bytes together.
func bounded(ids []workload.ID, most int) []workload.ID {
	for i, id := range ids {
		if most -= len(id) + len(`"",`); most < 0 {
			return ids[:i]
		}
	}
	return ids
}
