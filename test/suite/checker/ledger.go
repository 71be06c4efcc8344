package checker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// watchLedger looks all the time at what must never be in the ledger.
func (c *Checker) watchLedger(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var conn *pgx.Conn // kept from look to look: Postgres may be broken in between
	for {
		select {
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close(context.WithoutCancel(ctx))
			}
			return
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(ctx, askTimeout)
		if conn == nil || conn.IsClosed() {
			conn, _ = pgx.Connect(bounded, c.DatabaseURL)
		}
		if conn != nil {
			_ = c.lookAtLedger(bounded, conn)
		}
		cancel()
	}
}

// neverThere selects what must never be in the ledger, with what it is.
const neverThere = `
	SELECT 'over-committed node', concat_ws(' ', node, resource, reserved, 'reserved,', used, 'used of', allocatable, 'held by',
		(SELECT string_agg(concat_ws('/', w.name, w.phase, w.attempt), ' ') FROM reservations r JOIN workloads w ON w.id = r.workload WHERE r.node = n.node))
		FROM node_resources n WHERE reserved + used > allocatable
	UNION ALL SELECT 'half a gang', w.name FROM workloads w
		WHERE w.phase IN ('admitted', 'dispatched', 'running')
		AND w.gang <> (SELECT coalesce(sum(r.pods), 0) FROM reservations r WHERE r.workload = w.id)
	UNION ALL SELECT 'queued with a reservation', w.name FROM workloads w JOIN reservations r ON r.workload = w.id WHERE w.phase = 'queued'
	-- The services' logins have the rights of their role only.
	UNION ALL SELECT 'session that may do everything', a.usename::text FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
		WHERE a.application_name = 'muster-queue-manager'
		AND (r.rolsuper OR pg_has_role(r.oid, (SELECT relowner FROM pg_class WHERE oid = 'leader'::regclass), 'MEMBER'))
	UNION ALL SELECT 'reservation without an owner', r.workload::text FROM reservations r
		WHERE NOT EXISTS (SELECT FROM workloads w WHERE w.id = r.workload)`

func (c *Checker) lookAtLedger(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, neverThere)
	if err != nil {
		return err
	}
	var what, which string
	c.mu.Lock()
	before, over := c.over, map[string]time.Time{}
	c.mu.Unlock()
	_, err = pgx.ForEachRow(rows, []any{&what, &which}, func() error {
		if node, _, _ := strings.Cut(which, " "); what == overCommitted {
			if over[node] = before[node]; over[node].IsZero() {
				over[node] = time.Now()
			}
			if time.Since(over[node]) < overFor {
				return nil
			}
		}
		c.breach("%s: %s", what, which)
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = over
	return err
}

// overFor is how long a node may seem to be over-committed in the ledger: a watcher
// that was away tells late of pods that are gone, whose places others have by then.
// The pods themselves are the bystander's.
const (
	overFor       = 15 * time.Second
	overCommitted = "over-committed node"
)

// admissions selects from the history h what admits an attempt. A row of the same phase that
// has a reason says why the gang was moved, or has not started.
const admissions = `h.phase = 'admitted' AND h.reason IS NULL`

// checkDatabase reads the end of every gang, and that nothing is held.
func (c *Checker) checkDatabase(ctx context.Context, gangs []Gang) (wrong []string) {
	conn, err := pgx.Connect(ctx, c.DatabaseURL)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := c.lookAtLedger(ctx, conn); err != nil {
		wrong = append(wrong, fmt.Sprintf("look at the ledger: %v", err))
	}
	rows, err := conn.Query(ctx, `SELECT id::text, phase::text FROM workloads UNION ALL SELECT id::text, phase::text FROM archive`)
	if err != nil {
		return append(wrong, err.Error())
	}
	found, ends := map[string]int{}, map[string]string{}
	var id, phase string
	if _, err := pgx.ForEachRow(rows, []any{&id, &phase}, func() error { found[id]++; ends[id] = phase; return nil }); err != nil {
		return append(wrong, err.Error())
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
	var held []string
	for what, statement := range map[string]string{
		"reservations":                `SELECT count(*) FROM reservations`,
		"amounts reserved":            `SELECT count(*) FROM node_resources WHERE reserved <> 0`,
		"admissions beyond the first": `SELECT count(*) FROM (SELECT FROM history h WHERE ` + admissions + ` GROUP BY workload, attempt HAVING count(*) > 1) AS twice`,
	} {
		if err := conn.QueryRow(ctx, statement).Scan(&count); err != nil {
			wrong = append(wrong, fmt.Sprintf("count %s: %v", what, err))
		} else if count != 0 {
			wrong = append(wrong, fmt.Sprintf("at the end there are %d %s", count, what))
		}
	}
	if err := conn.QueryRow(ctx, `SELECT coalesce(array_agg(concat_ws(' ', r.pods, 'pods of', w.name, w.phase, w.attempt, 'hold', r.node)), '{}')
		FROM reservations r JOIN workloads w ON w.id = r.workload`).Scan(&held); err != nil {
		wrong = append(wrong, fmt.Sprintf("read who holds places: %v", err))
	}
	wrong = append(wrong, held...)
	// What was said of gangs that were admitted more than once in an attempt.
	var history []string
	if err := conn.QueryRow(ctx, `SELECT coalesce(array_agg(row_to_json(o)::text ORDER BY o.seq), '{}') FROM (SELECT * FROM history o WHERE EXISTS
		(SELECT FROM history h WHERE h.workload = o.workload AND `+admissions+` GROUP BY h.attempt HAVING count(*) > 1) ORDER BY seq LIMIT 40) o`).Scan(&history); err != nil {
		wrong = append(wrong, fmt.Sprintf("read the history: %v", err))
	}
	return append(wrong, history...)
}
