package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Workloads returns a page of workloads, live and finished.
func (s *Store) Workloads(ctx context.Context, r query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
	if r.Limit <= 0 || r.Limit > query.MaxPage {
		r.Limit = query.MaxPage
	}
	if r.ID != "" && uuid.Validate(string(r.ID)) != nil || r.AfterID != "" && uuid.Validate(string(r.AfterID)) != nil {
		return query.WorkloadsAnswer{Workloads: []workload.Record{}, Selected: len(r.Labels) > 0}, nil
	}
	if err := errors.Join(query.CheckLabels(r.Labels), r.CheckOrder(), r.CheckIDs()); err != nil {
		return query.WorkloadsAnswer{}, fmt.Errorf("list workloads: %w", err)
	}
	var found []state.StoredWorkload
	// One snapshot: a workload that moves to the archive meanwhile is in one place.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		live, err := liveWorkloads(ctx, tx, r)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			if err := s.explainQuarantined(ctx, live); err != nil {
				return err
			}
		}
		finished, err := finishedWorkloads(ctx, tx, r)
		found = append(live, finished...)
		return err
	})
	if err != nil {
		return query.WorkloadsAnswer{}, fmt.Errorf("list workloads: %w", err)
	}
	if r.Order == "" {
		slices.SortFunc(found, func(a, b state.StoredWorkload) int { return cmp.Compare(a.Order, b.Order) })
	}
	answer := query.WorkloadsAnswer{Workloads: []workload.Record{}, Selected: len(r.Labels) > 0}
	for i, w := range found {
		if i == r.Limit {
			answer.Next = found[i-1].Order
			break
		}
		answer.Workloads = append(answer.Workloads, w.Record)
	}
	return answer, nil
}

// filter is the part of a statement that selects the workloads of a request;
// what is not asked for is left out, so that the indexes serve. submitter is that of a row, and
// labels the condition on a row, given that on the column of labels. In the order of queues it does
// not select what is behind a place.
func filter(r query.WorkloadsRequest, submitter string, labels func(condition string) string) (where string, args []any) {
	where = "submission > $1"
	args = []any{r.After}
	add := func(condition string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" AND "+condition, len(args))
	}
	if r.ID != "" {
		add("id = $%d::uuid", string(r.ID))
	}
	if len(r.IDs) > 0 {
		add("id = ANY($%d::uuid[])", validIDs(r.IDs))
	}
	if r.Name != "" {
		add("name = $%d", r.Name)
	}
	if r.Namespace != "" {
		add("namespace = $%d", r.Namespace)
	}
	if r.Queue != "" {
		add("queue = $%d", r.Queue)
	}
	if r.Home != "" {
		add("starts_with("+submitter+" || '/', $%d)", workload.ByKubernetes+"/"+r.Home+"/") // the user may be unknown
	}
	if r.AfterID != "" && r.Order != query.OrderPosition {
		add("submission > coalesce((SELECT submission FROM workloads WHERE id = $%[1]d::uuid), (SELECT max(submission) FROM archive WHERE id = $%[1]d::uuid))", string(r.AfterID))
	}
	if len(r.Within) > 0 {
		queues, inQueue, namespaces := flatten(r.Within)
		args = append(args, queues, inQueue, namespaces)
		where += fmt.Sprintf(" AND (queue = ANY($%d) OR (queue, namespace) IN (SELECT * FROM unnest($%d::text[], $%d::text[])))", len(args)-2, len(args)-1, len(args))
	}
	if len(r.Phases) > 0 {
		phases := make([]string, len(r.Phases))
		for i, phase := range r.Phases {
			phases[i] = string(phase)
		}
		add("phase = ANY($%d)", phases)
		if !slices.ContainsFunc(r.Phases, func(p workload.Phase) bool { return !holdsPlaces(p) }) {
			// No index has the phase. A gang has a pod or more, so each of these has a row there.
			where += " AND id = ANY(ARRAY(SELECT DISTINCT workload FROM reservations))"
		}
	}
	if len(r.Labels) > 0 {
		var condition string
		condition, args = labelled(r.Labels, args)
		where += " AND " + labels(condition)
	}
	return where, args
}

// validIDs returns the ids that may be of workloads.
func validIDs(ids []workload.ID) []string {
	valid := []string{} // not null, which an array of no id would be
	for _, id := range ids {
		if uuid.Validate(string(id)) == nil {
			valid = append(valid, string(id))
		}
	}
	return valid
}

// holdsPlaces reports whether every workload in a phase holds places, as the ledger demands.
func holdsPlaces(p workload.Phase) bool { return p != workload.Queued && !p.Final() }

// labelled is the condition on the column of labels, with its arguments after others. Each
// part of it is one that the index on labels knows, or the opposite.
func labelled(requirements []query.LabelRequirement, args []any) (where string, all []any) {
	parts := make([]string, len(requirements))
	for i, r := range requirements {
		var either []string
		for _, value := range r.Values {
			args = append(args, encoded(map[string]string{r.Key: value}))
			either = append(either, fmt.Sprintf("labels @> $%d::jsonb", len(args)))
		}
		if len(r.Values) == 0 {
			args = append(args, r.Key)
			either = append(either, fmt.Sprintf("labels ? $%d", len(args)))
		}
		parts[i] = "(" + strings.Join(either, " OR ") + ")"
		if r.Operator == query.LabelNotIn || r.Operator == query.LabelAbsent {
			parts[i] += " IS NOT TRUE" // a row without a manifest has no labels
		}
	}
	return strings.Join(parts, " AND "), args
}

// flatten returns the queues that are whole, and the others with each of their namespaces.
func flatten(places []query.Place) (queues, inQueue, namespaces []string) {
	for _, p := range places {
		if len(p.Namespaces) == 0 {
			queues = append(queues, p.Queue)
		}
		for _, namespace := range p.Namespaces {
			inQueue, namespaces = append(inQueue, p.Queue), append(namespaces, namespace)
		}
	}
	return queues, inQueue, namespaces
}

func liveWorkloads(ctx context.Context, tx pgx.Tx, r query.WorkloadsRequest) ([]state.StoredWorkload, error) {
	behind, found, err := placeOf(ctx, tx, r)
	if err != nil || !found {
		return nil, err
	}
	statement, args := selectLive(r, behind, func(condition string) string {
		return "EXISTS (SELECT FROM manifests WHERE workload = workloads.id AND " + condition + ")"
	})
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	live, err := newReader().loadLive(ctx, tx, uuidsOf(ids))
	if err != nil {
		return nil, err
	}
	if r.Order == query.OrderPosition {
		sortAs(live, ids)
	}
	return live, positions(ctx, tx, live)
}

func finishedWorkloads(ctx context.Context, tx pgx.Tx, r query.WorkloadsRequest) ([]state.StoredWorkload, error) {
	if len(r.Phases) > 0 && !slices.ContainsFunc(r.Phases, workload.Phase.Final) {
		return nil, nil // the archive has final phases alone, and no index by phase
	}
	where, args := filter(r, "record->>'submitter'", func(condition string) string { return condition })
	args = append(args, r.Limit+1)
	rows, err := tx.Query(ctx, `SELECT submission, record FROM archive WHERE `+where+fmt.Sprintf(" ORDER BY submission LIMIT $%d", len(args)), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w state.StoredWorkload, err error) {
		return w, row.Scan(&w.Order, &w.Record)
	})
}

// History returns what happened to a workload.
func (s *Store) History(ctx context.Context, r query.HistoryRequest) (query.HistoryAnswer, error) {
	if uuid.Validate(string(r.ID)) != nil {
		return query.HistoryAnswer{Entries: []query.HistoryEntry{}}, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT at, phase, attempt, reason FROM history
		WHERE workload = $1::uuid ORDER BY seq LIMIT $2`, string(r.ID), query.MaxPage)
	if err != nil {
		return query.HistoryAnswer{}, fmt.Errorf("read history of workload %q: %w", r.ID, err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e query.HistoryEntry, err error) {
		return e, row.Scan(&e.At, &e.Phase, &e.Attempt, &e.Reason)
	})
	if err != nil {
		return query.HistoryAnswer{}, fmt.Errorf("read history of workload %q: %w", r.ID, err)
	}
	return query.HistoryAnswer{Entries: entries}, nil
}
