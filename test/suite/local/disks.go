package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/disk"
)

// startDisks makes a disk for each part that stores something, if there are to be
// some and this machine has them.
func (in *installation) startDisks(context.Context) error {
	if !in.shape.Disks || disk.Here() != nil {
		return nil
	}
	parts := []string{suite.Postgres}
	for i := range in.shape.NATS {
		parts = append(parts, suite.NATS(i+1))
	}
	for _, part := range parts {
		made, err := disk.Start()
		if err != nil {
			return err
		}
		in.disks[part] = made
	}
	return nil
}

// store is where a NATS server has its data.
func (in *installation) store(server string) string {
	if on := in.disks[server]; on != nil {
		return filepath.Join(on.Path, server)
	}
	return filepath.Join(in.dir, server)
}

// settle forces what a part has to its disk.
func (in *installation) settle(part string) error {
	if on := in.disks[part]; on != nil {
		return on.Sync()
	}
	return nil
}

// slowForce is how long a slow disk takes to force something.
const slowForce = 500 * time.Millisecond

// breakDisk causes a fault of the power or the disk of a part.
func (in *installation) breakDisk(_ context.Context, part string, fault suite.Fault) (func(context.Context) error, error) {
	on := in.disks[part]
	if on == nil {
		return nil, fmt.Errorf("%w: %s %s: %w", suite.ErrNotHere, part, fault, errors.Join(errors.New("it has no disk of its own"), disk.Here()))
	}
	// A fault that hits nothing tries nothing.
	well := func(end func(bool) error) error { return errors.Join(end(false), on.Struck()) }
	switch fault {
	case suite.PowerLost:
		in.end(part)
		return func(ctx context.Context) error { return in.begin(ctx, part) }, on.PowerOff()
	case suite.PowerLostTorn:
		in.end(part)
		return func(ctx context.Context) error { return in.begin(ctx, part) }, on.PowerOffTorn(rand.Uint64())
	case suite.DiskSlow:
		return func(context.Context) error { return errors.Join(on.Slow(0), on.Struck()) }, on.Slow(slowForce)
	case suite.DiskFull:
		return func(ctx context.Context) error { return errors.Join(well(on.Full), in.bringBack(ctx, part)) }, on.Full(true)
	case suite.DiskFailing:
		return func(ctx context.Context) error { return errors.Join(well(on.Fail), in.bringBack(ctx, part)) }, on.Fail(true)
	}
	return nil, fmt.Errorf("%w: %s %s", suite.ErrNotHere, part, fault)
}

// end ends a part at once.
func (in *installation) end(part string) {
	if part == suite.Postgres {
		in.postgres.Crash()
		return
	}
	in.processes[part].kill()
}

// begin starts a part that has ended.
func (in *installation) begin(ctx context.Context, part string) error {
	if part == suite.Postgres {
		return in.postgres.Restart(ctx)
	}
	return in.processes[part].start()
}

// bringBack does what the runbook says when a disk is well again: NATS is started again;
// Postgres is so by what runs it, when it has ended.
func (in *installation) bringBack(ctx context.Context, part string) error {
	if part != suite.Postgres {
		in.end(part)
		return in.begin(ctx, part)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-in.postgres.Exited():
			if err := in.postgres.Restart(ctx); err != nil {
				return err
			}
		default:
		}
		err := in.checkpoint(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C: // it may still be about to end
		case <-ctx.Done():
			return fmt.Errorf("Postgres does not come back: %w", err)
		}
	}
}

// checkpoint has Postgres force all that it has.
func (in *installation) checkpoint(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, in.access.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "CHECKPOINT")
	return err
}
