package app

import (
	"context"
	"errors"
	"time"

	"muster.dev/muster/services/queue-manager/internal/replay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// ReplayReport is what a replay found.
type ReplayReport = replay.Report

// ErrNothingToReplay is wrapped by Replay when nothing is kept to begin with.
var ErrNothingToReplay = replay.ErrNoBase

// Replay decides again what was recorded since the given time, or all that is
// kept for the zero time, and compares. It calls progress now and then.
func Replay(ctx context.Context, databaseURL string, since time.Time, progress func(ReplayReport)) (ReplayReport, error) {
	if databaseURL == "" {
		return ReplayReport{}, errors.New("the database URL is missing")
	}
	ledger, err := store.Open(ctx, databaseURL, store.DefaultTimeouts())
	if err != nil {
		return ReplayReport{}, err
	}
	defer ledger.Close()
	return replay.Run(ctx, ledger, since, progress)
}
