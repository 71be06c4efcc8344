package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// apart reads live workloads by their ids, and finds those of which the database refuses to read
// the row.
type apart struct {
	reader *reader
	tx     pgx.Tx
	live   []state.StoredWorkload
	unread []state.Quarantined
}

// noWorkload is an id that no workload has.
const noWorkload = "00000000-0000-0000-0000-000000000000"

// loadApart reads all live workloads, in the order of submission, and what cannot be read of them.
// Their ids are those of manifests, which each live workload has, and of reservations.
func loadApart(ctx context.Context, tx pgx.Tx) (*apart, error) {
	a := &apart{reader: newReader(), tx: tx}
	if err := findByID(ctx, tx); err != nil {
		return nil, err
	}
	if _, err := a.reader.loadLive(ctx, tx, uuids{uuidText(noWorkload)}); err != nil {
		return nil, err // no row is at fault
	}
	rows, err := tx.Query(ctx, `SELECT workload FROM manifests UNION SELECT workload FROM reservations`)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	if err := a.load(ctx, ids); err != nil {
		return nil, err
	}
	slices.SortFunc(a.live, func(x, y state.StoredWorkload) int { return cmp.Compare(x.Order, y.Order) })
	return a, nil
}

// findByID keeps Postgres in this transaction from plans that find rows by anything but their ids:
// they would read those that are refused.
func findByID(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true)`)
	return err
}

// lastOrder is at least the place of the last submission: each of those that cannot be read may
// have come after all that can be.
func (a *apart) lastOrder(archived int64) int64 {
	last := archived
	for _, w := range a.live {
		last = max(last, w.Order)
	}
	return last + int64(len(a.unread))
}

// load reads workloads, and halves what is refused.
func (a *apart) load(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	var live []state.StoredWorkload
	err := pgx.BeginFunc(ctx, a.tx, func(part pgx.Tx) (err error) {
		live, err = a.reader.loadLive(ctx, part, uuidsOf(ids))
		return err
	})
	half := len(ids) / 2
	switch {
	case err == nil:
		a.live = append(a.live, live...)
		return nil
	case !Suspect(err):
		return err
	case half == 0:
		return a.keep(ctx, workload.ID(ids[0]), err)
	}
	if err := a.load(ctx, ids[:half]); err != nil {
		return err
	}
	return a.load(ctx, ids[half:])
}

// keep notes a workload that cannot be read. One that holds places is taken in with what else is
// stored of it: what it holds stays charged, and nothing of it is decided. One that waits
// takes nothing, and is left out.
func (a *apart) keep(ctx context.Context, id workload.ID, cause error) error {
	held, err := a.held(ctx, id)
	if err != nil {
		return fmt.Errorf("read the places of workload %s, whose row is refused (%w): %w", id, cause, err)
	}
	if len(held.Placements) > 0 {
		a.live = append(a.live, held)
	}
	a.unread = append(a.unread, state.Quarantined{
		Workload: id, Level: state.QuarantineFrozen, Tries: 1, Why: fmt.Sprintf("its row cannot be read: %v", cause),
	})
	return nil
}

// held is a workload as its reservations and its history have it; without places when it has no
// reservations.
func (a *apart) held(ctx context.Context, id workload.ID) (held state.StoredWorkload, err error) {
	held.ID, held.Holding = id, true
	rows, err := a.tx.Query(ctx, `SELECT attempt, cluster, pod_set, node, pods, hostname, requests, charges FROM reservations
		WHERE workload = $1::uuid ORDER BY pod_set COLLATE "C", node COLLATE "C"`, uuidText(id))
	if err != nil {
		return held, err
	}
	var p workload.Placement
	var requests, charges []byte
	_, err = pgx.ForEachRow(rows, []any{&held.Attempt, &held.Cluster, &p.PodSet, &p.Node, &p.Pods, &p.Hostname, &requests, &charges}, func() error {
		held.Placements = append(held.Placements, p)
		return addHeld(&held.Record, p, requests, charges)
	})
	if err != nil || len(held.Placements) == 0 {
		return held, err
	}
	return held, a.describe(ctx, &held.Record)
}

// addHeld adds the pods of one reservation to the pod sets of a record.
func addHeld(r *workload.Record, p workload.Placement, requests, charges []byte) error {
	if last := len(r.PodSets) - 1; last >= 0 && r.PodSets[last].Name == p.PodSet {
		r.PodSets[last].Count += p.Pods
		return nil
	}
	set := workload.PodSet{Name: p.PodSet, Count: p.Pods}
	set.Template.Requests = resource.List{}
	if err := json.Unmarshal(requests, &set.Template.Requests); err != nil {
		return fmt.Errorf("read the requests %s: %w", requests, err)
	}
	r.PodSets = append(r.PodSets, set)
	if charges == nil {
		return nil
	}
	var charged state.Charges
	if err := json.Unmarshal(charges, &charged); err != nil {
		return fmt.Errorf("read the charges %s: %w", charges, err)
	}
	for _, scope := range charged.Scopes {
		if name, is := strings.CutPrefix(scope, quota.QueueScope); is {
			r.Queue = name
		}
	}
	r.Flavors = append(r.Flavors, workload.PodSetFlavors{PodSet: p.PodSet, Flavors: charged.Flavors})
	return nil
}

// describe completes a record by its history and its manifest, as far as these can be read.
// Old partitions of the history are dropped, also those of a gang that still runs: without one it
// is dispatched, in the ClusterQueue to which its places are charged.
func (a *apart) describe(ctx context.Context, r *workload.Record) error {
	step, phase, at := workload.UsageStep{}, workload.Dispatched, time.Now().UTC()
	err := a.readable(ctx, func(tx pgx.Tx) error { return lastHeld(ctx, tx, r.ID, &step, &phase, &at) })
	if err != nil {
		return err
	}
	r.Phase, r.Queue, r.Namespace, r.Submitter = phase, cmp.Or(step.Queue, r.Queue), step.Namespace, step.Submitter
	r.Times = workload.Times{Submitted: at, Admitted: at, Dispatched: at}
	if r.Phase == workload.Running {
		r.Times.Running = at
	}
	err = a.readable(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce(manifest->>'kind', ''), coalesce(manifest->'metadata'->>'name', '') FROM manifests
			WHERE workload = $1::uuid`, uuidText(r.ID)).Scan(&r.Kind, &r.Name)
	})
	if r.Name = strings.TrimSpace(r.Name); r.Name == "" {
		r.Name = string(r.ID)
	}
	return err
}

// lastHeld reads the last step of the history that says what a workload holds; where none is kept,
// only when the last step was.
func lastHeld(ctx context.Context, tx pgx.Tx, id workload.ID, step *workload.UsageStep, phase *workload.Phase, at *time.Time) error {
	var last workload.Phase
	var since time.Time
	var usage []byte
	err := tx.QueryRow(ctx, `SELECT phase, at, CASE WHEN usage->'held' IS NOT NULL THEN usage END FROM history WHERE workload = $1::uuid
		ORDER BY usage->'held' IS NOT NULL DESC, seq DESC LIMIT 1`, uuidText(id)).Scan(&last, &since, &usage)
	if err != nil {
		return err
	}
	if *at = since; usage == nil {
		return nil
	}
	var read workload.UsageStep
	if err := json.Unmarshal(usage, &read); err != nil {
		return nil // the places are known all the same
	}
	*step, *phase = read, last
	return nil
}

// readable reads what is there and the database does not refuse.
func (a *apart) readable(ctx context.Context, read func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, a.tx, read)
	if errors.Is(err, pgx.ErrNoRows) || Suspect(err) {
		return nil
	}
	return err
}
