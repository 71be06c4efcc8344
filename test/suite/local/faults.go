package local

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/test/suite"
)

// breakPostgres causes a fault of the database.
func (in *installation) breakPostgres(ctx context.Context, fault suite.Fault) (func(context.Context) error, error) {
	switch fault {
	case suite.Killed:
		in.postgres.Crash()
		return in.postgres.Restart, nil
	case suite.Older:
		return in.postgres.Restore, in.postgres.BackUp(ctx)
	case suite.Terminated:
		conn, err := pgx.Connect(ctx, in.access.DatabaseURL)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		return func(context.Context) error { return nil }, err
	}
	return nil, fmt.Errorf("%w: Postgres %s", suite.ErrNotHere, fault)
}

// Break implements suite.Installation.
func (in *installation) Break(ctx context.Context, name string, fault suite.Fault) (func(context.Context) error, error) {
	if fault.OfClock() {
		return in.breakClock(ctx, name, fault)
	}
	if fault.OfDisk() {
		return in.breakDisk(ctx, name, fault)
	}
	if name == suite.DNS && fault.OfNames() {
		return in.breakNames(fault)
	}
	if name == suite.APIServer && fault == suite.Back {
		return in.Cluster.RestoreEtcd, in.Cluster.SaveEtcd(ctx)
	}
	if name == suite.Postgres {
		return in.breakPostgres(ctx, fault)
	}
	part := in.processes[name]
	if part == nil {
		return nil, fmt.Errorf("there is no part %q", name)
	}
	switch {
	case fault == suite.Killed:
		part.kill()
		return func(context.Context) error { return part.start() }, nil
	case fault == suite.Wiped:
		part.kill()
		if err := os.RemoveAll(in.store(name)); err != nil {
			return nil, err
		}
		return func(context.Context) error { return part.start() }, nil
	case fault == suite.Paused:
		return func(context.Context) error { return part.signal(syscall.SIGCONT) }, part.signal(syscall.SIGSTOP)
	case fault == suite.Purged || fault == suite.KeptPurged || fault == suite.StreamsGone || fault == suite.StreamsBare:
		return func(context.Context) error { return nil }, in.loseStreams(ctx, name, fault)
	case fault == suite.HalfClosedNATS && in.toNATS[name] != nil:
		return halfClosed(in.toNATS[name]...), nil
	case fault == suite.HalfClosedPostgres && in.toPostgres[name] != nil:
		return halfClosed(in.toPostgres[name]), nil
	case fault == suite.HalfClosedAPI && in.toAPI[name] != nil:
		return halfClosed(in.toAPI[name]), nil
	case fault == suite.LateNATS && in.toNATS[name] != nil:
		return late(in.toNATS[name]...), nil
	case fault == suite.LatePostgres && in.toPostgres[name] != nil:
		return late(in.toPostgres[name]), nil
	case fault == suite.CutByNATS && in.toNATS[name] != nil:
		return cut(in.toNATS[name]...), nil
	case fault == suite.CutFromPostgres && in.toPostgres[name] != nil:
		return cut(in.toPostgres[name]), nil
	case fault == suite.CutFromAPI && in.toAPI[name] != nil:
		return cut(in.toAPI[name]), nil
	case fault == suite.CutInCommit && in.toPostgres[name] != nil:
		p := in.toPostgres[name]
		p.swallow(true)
		return func(context.Context) error { p.swallow(false); return nil }, nil
	}
	return nil, fmt.Errorf("%w: %s %s needs containers", suite.ErrNotHere, name, fault)
}

func cut(proxies ...*proxy) func(context.Context) error {
	for _, p := range proxies {
		p.cut(true)
	}
	return func(context.Context) error {
		for _, p := range proxies {
			p.cut(false)
		}
		return nil
	}
}
