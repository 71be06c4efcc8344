package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Kinds of what is in quarantine.
const (
	quarantinedWorkload = "workload"
	quarantinedNode     = "node"
)

// undefinedTable is the SQLSTATE of a schema from before the table.
const undefinedTable = "42P01"

// Quarantine keeps what is in quarantine for later terms.
func (s *Store) Quarantine(ctx context.Context, epoch int64, quarantined []state.Quarantined) error {
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		for _, a := range quarantined {
			kind, cluster, name := quarantinedWorkload, "", string(a.Workload)
			if a.Node.Name != "" {
				kind, cluster, name = quarantinedNode, a.Node.Cluster, a.Node.Name
			}
			batch.Queue(`INSERT INTO quarantine (kind, cluster, name, level, until, attempt, tries, why, epoch) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
				ON CONFLICT (kind, cluster, name) DO UPDATE SET level = excluded.level, until = excluded.until, attempt = excluded.attempt,
					tries = excluded.tries, why = excluded.why, epoch = excluded.epoch, since = now()`,
				kind, cluster, name, int32(a.Level), timeOrNull(a.Until), int32(a.Attempt), int32(a.Tries), a.Why, epoch)
		}
	})
	if err != nil {
		return fmt.Errorf("keep %d workloads and nodes in quarantine: %w", len(quarantined), err)
	}
	return nil
}

// quarantineKept is how long it is remembered that a workload was in quarantine that is
// not live any more, or was tried again.
const quarantineKept = time.Hour

// isKept is whether a row of quarantine counts: it is young, or is kept until it is released and not
// of a workload that has ended. The other rows are removed (Store.Tidy).
var isKept = fmt.Sprintf(`(since > now() - '%d seconds'::interval OR until IS NULL AND (kind = 'node' OR %s))`, int(quarantineKept.Seconds()), isLive)

// isLive is whether a row of quarantine is of a live workload, which has a manifest: its own row
// may be what cannot be read.
const isLive = `EXISTS (SELECT FROM manifests m WHERE m.workload = CASE quarantine.kind WHEN 'workload' THEN quarantine.name::uuid END)`

// Quarantined returns what is in quarantine, in order. A schema from before
// quarantine has nothing in it.
func (s *Store) Quarantined(ctx context.Context) (quarantined []state.Quarantined, err error) {
	rows, err := s.pool.Query(ctx, `SELECT kind, cluster, name, level, until, attempt, tries, why FROM quarantine
		WHERE `+isKept+` ORDER BY kind, cluster, name`)
	if err == nil {
		quarantined, err = pgx.CollectRows(rows, scanQuarantined)
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == undefinedTable {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is in quarantine: %w", err)
	}
	return quarantined, nil
}

func scanQuarantined(row pgx.CollectableRow) (a state.Quarantined, err error) {
	var kind, cluster, name string
	var level int
	var until *time.Time
	if err := row.Scan(&kind, &cluster, &name, &level, &until, &a.Attempt, &a.Tries, &a.Why); err != nil {
		return a, err
	}
	a.Level = state.QuarantineLevel(level)
	if until != nil {
		a.Until = until.UTC()
	}
	if kind == quarantinedNode {
		a.Node = admission.NodeKey{Cluster: cluster, Name: name}
	} else {
		a.Workload = workload.ID(name)
	}
	return a, nil
}

// Unquarantine takes a workload, or a node named CLUSTER/NODE, out of quarantine; it
// reports whether it was there. The leader notices, and tries it again.
func (s *Store) Unquarantine(ctx context.Context, what string) (bool, error) {
	where, args := `kind = 'node' AND cluster || '/' || name = $1`, []any{what}
	if uuid.Validate(what) == nil {
		where = `kind = 'workload' AND name = $1`
	}
	tag, err := s.pool.Exec(ctx, `DELETE FROM quarantine WHERE `+where, args...)
	if err != nil {
		return false, fmt.Errorf("release %q from quarantine: %w", what, err)
	}
	return tag.RowsAffected() > 0, nil
}

// explainQuarantined sets the reason of workloads of which nothing can be written.
func (s *Store) explainQuarantined(ctx context.Context, live []state.StoredWorkload) error {
	quarantined, err := s.Quarantined(ctx)
	if err != nil {
		return err
	}
	for _, a := range quarantined {
		for i := range live {
			if live[i].ID == a.Workload && a.Level >= state.QuarantineFailed && !a.Over(time.Now()) {
				live[i].Reason = a.Reason()
			}
		}
	}
	return nil
}
