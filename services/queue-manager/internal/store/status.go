package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// maxHeldListed bounds the held queues of an answer.
const maxHeldListed = 100

// Status fills in what Postgres knows: the leader, the counts of workloads, the clusters, the
// gangs that a person has to look at, and the condition of the database itself.
func (s *Store) Status(ctx context.Context, answer *query.StatusAnswer) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.gangsToSee(ctx, answer) }) // it reads all workloads, as counting them does
	group.Go(func() error {
		for _, part := range []func(context.Context, *query.StatusAnswer) error{
			s.serverStatus, s.leaderStatus, s.workloadStatus, s.heldQueues, s.refusedRows,
		} {
			if err := part(ctx, answer); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("read the status of the database: %w", err)
	}
	return nil
}

// serverStatus reads what Postgres reports of itself. Without pg_read_all_stats a login sees
// how many standbys there are, and not where they are.
func (s *Store) serverStatus(ctx context.Context, answer *query.StatusAnswer) error {
	p := &answer.Postgres
	var seen int
	var lag *int64
	err := s.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('max_connections')::int,
			(SELECT sum(numbackends) FROM pg_stat_database)::int, pg_database_size(current_database()),
			(SELECT count(*) FROM pg_stat_replication), (SELECT count(replay_lsn) FROM pg_stat_replication),
			CASE WHEN NOT pg_is_in_recovery() THEN (SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)) FROM pg_stat_replication)::bigint END`).
		Scan(&p.Version, &p.MaxConnections, &p.Connections, &p.Bytes, &p.Followers, &seen, &lag)
	if err == nil && seen > 0 && seen == p.Followers && lag != nil {
		behind := max(0, *lag)
		p.LagBytes = &behind
	}
	return err
}

// leaderStatus reads who led last, and who holds or awaits the lock now.
func (s *Store) leaderStatus(ctx context.Context, answer *query.StatusAnswer) error {
	leader := &query.LeaderStatus{}
	err := s.pool.QueryRow(ctx, `SELECT holder, epoch, since, coalesce(held, false), coalesce(waiting, 0)
		FROM leader, (SELECT bool_or(granted) AS held, count(*) FILTER (WHERE NOT granted)::int AS waiting FROM pg_locks
			WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = $1
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) locks`, int64(leadershipLock)).
		Scan(&leader.Holder, &leader.Epoch, &leader.Since, &leader.Leads, &leader.Standbys)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		answer.Leader = leader
	}
	return err
}

// workloadStatus counts workloads by phase, and lists the clusters that have reported nodes, or
// where workloads hold places. It reads the workloads once: where many wait that takes longest.
func (s *Store) workloadStatus(ctx context.Context, answer *query.StatusAnswer) error {
	clusters := map[string]*query.ClusterStatus{}
	of := func(name string) *query.ClusterStatus {
		if clusters[name] == nil {
			clusters[name] = &query.ClusterStatus{Name: name}
		}
		return clusters[name]
	}
	rows, err := s.pool.Query(ctx, `SELECT phase, coalesce(cluster, ''), holding, count(*)::int, count(hold)::int, min(admitted_at)
		FROM workloads GROUP BY 1, 2, 3`)
	if err != nil {
		return err
	}
	answer.Workloads = map[workload.Phase]int{}
	var phase, cluster string
	var holding bool
	var count, held int
	var since *time.Time
	if _, err := pgx.ForEachRow(rows, []any{&phase, &cluster, &holding, &count, &held, &since}, func() error {
		answer.Workloads[workload.Phase(phase)] += count
		answer.HeldWorkloads += held
		if !holding || cluster == "" {
			return nil
		}
		c := of(cluster)
		c.Live += count
		if since != nil && (c.LiveSince.IsZero() || since.Before(c.LiveSince)) {
			c.LiveSince = *since
		}
		return nil
	}); err != nil {
		return err
	}
	rows, err = s.pool.Query(ctx, `SELECT cluster, count(*)::int, count(*) FILTER (WHERE observed->>'ready' = 'true')::int FROM nodes WHERE present GROUP BY cluster`)
	if err != nil {
		return err
	}
	var ready int
	if _, err := pgx.ForEachRow(rows, []any{&cluster, &count, &ready}, func() error {
		c := of(cluster)
		c.Nodes, c.ReadyNodes = count, ready
		return nil
	}); err != nil {
		return err
	}
	answer.Clusters = []query.ClusterStatus{}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		answer.Clusters = append(answer.Clusters, *clusters[name])
	}
	return nil
}

// heldQueues lists what is held in the stored policy.
func (s *Store) heldQueues(ctx context.Context, answer *query.StatusAnswer) error {
	var policy quota.Config
	err := s.pool.QueryRow(ctx, `SELECT config FROM policy`).Scan(&policy)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	answer.Held = policy.Held()
	answer.Held = answer.Held[:min(len(answer.Held), maxHeldListed)]
	if err := s.usedUpBudgets(ctx, policy, answer); err != nil {
		return err
	}
	describeClusters(policy, answer)
	return s.inactiveQueues(ctx, policy, answer)
}

// describeClusters adds to the clusters what the policy has of them, and the described ones
// that have reported no node.
func describeClusters(policy quota.Config, answer *query.StatusAnswer) {
	at := map[string]int{}
	of := func(name string) *query.ClusterStatus {
		i, known := at[name]
		if !known {
			i = len(answer.Clusters)
			at[name], answer.Clusters = i, append(answer.Clusters, query.ClusterStatus{Name: name})
		}
		return &answer.Clusters[i]
	}
	for i, c := range answer.Clusters {
		at[c.Name] = i
	}
	for _, described := range policy.Clusters {
		c := of(described.Name)
		c.Labels, c.Cost, c.Queues, c.Flavors = described.Labels, described.Cost, described.Queues, described.Flavors
	}
	for _, cordon := range policy.ClusterCordons {
		of(cordon.Name).Cordon = &cordon
	}
	slices.SortFunc(answer.Clusters, func(a, b query.ClusterStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// inactiveQueues lists the inactive ClusterQueues for which workloads wait.
func (s *Store) inactiveQueues(ctx context.Context, policy quota.Config, answer *query.StatusAnswer) error {
	inactive := policy.Inactive()
	if len(inactive) == 0 {
		return nil
	}
	led := leading{}
	for _, l := range policy.LocalQueues {
		led[state.LocalQueueKey{Namespace: l.Namespace, Queue: l.Name}] = l.ClusterQueue
	}
	rows, err := s.pool.Query(ctx, `SELECT namespace, queue, count(*)::int FROM workloads WHERE phase = 'queued' GROUP BY namespace, queue`)
	if err != nil {
		return err
	}
	waiting := map[string]int{}
	var namespace, queue string
	var count int
	if _, err := pgx.ForEachRow(rows, []any{&namespace, &queue, &count}, func() error {
		waiting[led.by(namespace, queue)] += count
		return nil
	}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(inactive)) {
		if waiting[name] > 0 && len(answer.Inactive) < maxHeldListed {
			answer.Inactive = append(answer.Inactive, query.InactiveQueue{Name: name, Why: inactive[name], Waiting: waiting[name]})
		}
	}
	return nil
}

// refusedRows counts what Postgres or NATS has refused to keep.
func (s *Store) refusedRows(ctx context.Context, answer *query.StatusAnswer) error {
	p := &answer.Postgres
	err := s.pool.QueryRow(ctx, `SELECT count(*)::int FROM undelivered`).Scan(&p.Undelivered)
	if err != nil {
		return err
	}
	err = s.pool.QueryRow(ctx, `SELECT count(*)::int FROM quarantine WHERE until IS NULL AND (kind = 'node' OR `+isLive+`)`).Scan(&p.Quarantined)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == undefinedTable {
		return nil
	}
	return err
}

// usedUpBudgets lists the budgets of which nothing is left and that only warn.
func (s *Store) usedUpBudgets(ctx context.Context, policy quota.Config, answer *query.StatusAnswer) error {
	if len(policy.Budgets) == 0 {
		return nil
	}
	uses, err := s.BudgetUses(ctx)
	if err != nil {
		return err
	}
	for _, b := range budgetsOf(policy, uses, time.Now()) {
		if b.UsedUp() && b.Action == quota.BudgetWarns && len(answer.Budgets) < maxHeldListed {
			answer.Budgets = append(answer.Budgets, b.Message())
		}
	}
	return nil
}
