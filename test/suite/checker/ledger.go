package checker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// watchLedger looks all the time at what must never be in the ledger.
func (c *Checker) watchLedger(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(ctx, askTimeout)
		_ = c.lookAtLedger(bounded) // Postgres may be broken
		cancel()
	}
}

func (c *Checker) lookAtLedger(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for what, statement := range map[string]string{
		"over-committed node": `SELECT node || ' ' || resource FROM node_resources WHERE reserved + used > allocatable`,
		"half a gang": `SELECT w.name FROM workloads w
			WHERE w.phase IN ('admitted', 'dispatched', 'running')
			AND w.gang <> (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = w.id)`,
		"queued with a reservation": `SELECT w.name FROM workloads w JOIN reservations r ON r.workload = w.id WHERE w.phase = 'queued'`,
		// The services' logins have the rights of their role only.
		"session that may do everything": `SELECT a.usename FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
			WHERE a.application_name = 'muster-queue-manager'
			AND (r.rolsuper OR pg_has_role(r.oid, (SELECT relowner FROM pg_class WHERE oid = 'leader'::regclass), 'MEMBER'))`,
		"reservation without an owner": `SELECT r.workload::text FROM reservations r
			WHERE NOT EXISTS (SELECT FROM workloads w WHERE w.id = r.workload)`,
	} {
		rows, err := conn.Query(ctx, statement)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if len(found) > 0 {
			c.breach("%s: %v", what, found)
		}
	}
	return nil
}

// checkDatabase reads the end of every gang, and that nothing is held.
func (c *Checker) checkDatabase(ctx context.Context, gangs []Gang) (wrong []string) {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `SELECT id::text, phase::text FROM workloads UNION ALL SELECT id::text, phase::text FROM archive`)
	if err != nil {
		return []string{err.Error()}
	}
	found, ends := map[string]int{}, map[string]string{}
	var id, phase string
	if _, err := pgx.ForEachRow(rows, []any{&id, &phase}, func() error { found[id]++; ends[id] = phase; return nil }); err != nil {
		return []string{err.Error()}
	}
	for _, g := range gangs {
		if found[g.ID] != 1 {
			wrong = append(wrong, fmt.Sprintf("gang %s is %d times in the database, want once", g.Name, found[g.ID]))
		} else if !slices.Contains(g.Ends, ends[g.ID]) {
			wrong = append(wrong, fmt.Sprintf("gang %s is %q, want one of %v", g.Name, ends[g.ID], g.Ends))
		}
	}
	if len(found) != len(gangs) {
		wrong = append(wrong, fmt.Sprintf("there are %d workloads in the database, %d were submitted", len(found), len(gangs)))
	}
	var count int
	for what, statement := range map[string]string{
		"reservations":                `SELECT count(*) FROM reservations`,
		"amounts reserved":            `SELECT count(*) FROM node_resources WHERE reserved <> 0`,
		"admissions beyond the first": `SELECT count(*) FROM (SELECT FROM history WHERE phase = 'admitted' AND reason IS NULL GROUP BY workload, attempt HAVING count(*) > 1) AS twice`,
	} {
		if err := conn.QueryRow(ctx, statement).Scan(&count); err != nil {
			wrong = append(wrong, fmt.Sprintf("count %s: %v", what, err))
		} else if count != 0 {
			wrong = append(wrong, fmt.Sprintf("at the end there are %d %s", count, what))
		}
	}
	// What was said of gangs that were admitted more than once in an attempt.
	var told []string
	if err := conn.QueryRow(ctx, `SELECT coalesce(array_agg(row_to_json(h)::text ORDER BY h.seq), '{}') FROM (SELECT * FROM history h WHERE EXISTS
		(SELECT FROM history o WHERE o.workload = h.workload AND o.phase = 'admitted' AND o.reason IS NULL GROUP BY o.attempt HAVING count(*) > 1) ORDER BY seq LIMIT 40) h`).Scan(&told); err != nil {
		wrong = append(wrong, fmt.Sprintf("read the history: %v", err))
	}
	return append(wrong, told...)
}
