package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// ErrBadData is wrapped by Commit when Postgres cannot store a value at all, so
// that trying again is useless.
var ErrBadData = errors.New("a value cannot be stored")

// ErrStale is wrapped by Commit when the changes were decided on a version of
// the ledger that is not the last one.
var ErrStale = errors.New("the ledger has changed since this was decided")

// source is the CloudEvents source of what queue-manager says.
const source = "muster/queue-manager"

// Outgoing is a message of the outbox: written, to be published.
type Outgoing struct {
	Seq     int64
	EventID string
	Subject string
	TTL     time.Duration
	Message []byte
	// ManifestOf names the workload whose manifest the message still lacks.
	ManifestOf workload.ID
}

// Commit writes the changes in one transaction and returns the messages that
// may now leave, in order. Errors wrap ErrFenced, ErrStale or ErrBadData; after
// any error nothing was written, but for a connection lost during the commit
// itself, when it is unknown: read anew.
func (s *Store) Commit(ctx context.Context, changes book.Changes) ([]Outgoing, error) {
	outgoing, err := encode(changes.Messages)
	if err != nil {
		return nil, fmt.Errorf("commit changes: %w", err)
	}
	var shapes []string
	err = s.transact(ctx, changes.Epoch, func(batch *pgx.Batch) {
		if changes.Empty() {
			return // the leader asks whether it still is
		}
		queueVersion(batch, changes)
		queueNodes(batch, changes.Nodes)
		shapes = s.queueWorkloads(batch, changes)
		queueDropped(batch, changes.Nodes)
		queueHistory(batch, changes)
		queueOutbox(batch, outgoing)
	})
	if err != nil {
		return nil, fmt.Errorf("commit changes: %w", explained(err))
	}
	s.noteShapes(shapes)
	return outgoing, nil
}

// explained marks the errors that a caller tells apart.
func explained(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || len(refused.Code) != 5 {
		return err
	}
	switch {
	case refused.Code[:2] == "22":
		return fmt.Errorf("%w: %w", ErrBadData, err)
	case refused.ConstraintName == "commits_pkey":
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// queueVersion numbers the commit and tells standbys what it touches.
func queueVersion(batch *pgx.Batch, c book.Changes) {
	workloads := make([]string, 0, len(c.Added)+len(c.Updated))
	for _, a := range c.Added {
		workloads = append(workloads, string(a.ID))
	}
	for _, r := range c.Updated {
		workloads = append(workloads, string(r.ID))
	}
	clusters, nodes := make([]string, len(c.Nodes)), make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		clusters[i], nodes[i] = n.Cluster, n.Name
	}
	batch.Queue(`INSERT INTO commits (version, epoch, workloads, clusters, nodes) VALUES ($1, $2, $3::uuid[], $4, $5)`,
		c.Version, c.Epoch, workloads, clusters, nodes)
}

// encode makes the messages of the outbox. A command to start a gang leaves its
// manifest to Complete.
func encode(messages []book.Message) ([]Outgoing, error) {
	outgoing := make([]Outgoing, len(messages))
	for i, m := range messages {
		envelope, err := event.New(m.ID, source, m.At, m.Payload)
		if err != nil {
			return nil, err
		}
		encoded, err := envelope.Encode()
		if err != nil {
			return nil, err
		}
		outgoing[i] = Outgoing{EventID: m.ID, Subject: m.Subject, TTL: m.TTL, Message: encoded}
		if command, ok := m.Payload.(*event.GangDesired); ok && command.State == event.Present {
			outgoing[i].ManifestOf = command.Workload
		}
	}
	return outgoing, nil
}

func queueOutbox(batch *pgx.Batch, outgoing []Outgoing) {
	if len(outgoing) == 0 {
		return
	}
	n := len(outgoing)
	ids, subjects, manifests := make([]string, n), make([]string, n), make([]*string, n)
	ttls, messages := make([]time.Duration, n), make([][]byte, n)
	for i, m := range outgoing {
		ids[i], subjects[i], ttls[i], messages[i] = m.EventID, m.Subject, m.TTL, m.Message
		manifests[i] = orNull(string(m.ManifestOf))
	}
	batch.Queue(`INSERT INTO outbox (event_id, subject, ttl, message, manifest_of)
		SELECT id, subject, ttl, message, manifest_of
		FROM unnest($1::text[], $2::text[], $3::interval[], $4::bytea[], $5::uuid[]) WITH ORDINALITY
			AS m (id, subject, ttl, message, manifest_of, place)
		ORDER BY place RETURNING seq`, ids, subjects, ttls, messages, manifests).
		Query(func(rows pgx.Rows) error {
			i := 0
			var seq int64
			_, err := pgx.ForEachRow(rows, []any{&seq}, func() error {
				outgoing[i].Seq = seq
				i++
				return nil
			})
			return err
		})
}

// Complete puts the manifests into commands. A command whose workload has ended
// meanwhile is left without: a later one follows it.
func (s *Store) Complete(ctx context.Context, messages []Outgoing) error {
	wanted := map[workload.ID][]int{}
	for i, m := range messages {
		if m.ManifestOf != "" {
			wanted[m.ManifestOf] = append(wanted[m.ManifestOf], i)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	rows, err := s.pool.Query(ctx, `SELECT workload, manifest FROM manifests WHERE workload = ANY($1::uuid[])`,
		texts(slices.Collect(maps.Keys(wanted))))
	if err != nil {
		return fmt.Errorf("read manifests of %d workloads: %w", len(wanted), err)
	}
	var id workload.ID
	var manifest []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &manifest}, func() error {
		for _, i := range wanted[id] {
			messages[i].Message, messages[i].ManifestOf = withManifest(messages[i].Message, manifest), ""
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read manifests of %d workloads: %w", len(wanted), err)
	}
	return nil
}

// withManifest puts the manifest into a command as encode wrote it: the data is
// an object that is not empty, and the last thing of the envelope.
func withManifest(command, manifest []byte) []byte {
	const key = `,"manifest":`
	whole := make([]byte, 0, len(command)+len(key)+len(manifest))
	whole = append(whole, command[:len(command)-2]...)
	whole = append(whole, key...)
	whole = append(whole, manifest...)
	return append(whole, "}}"...)
}

// Unsent returns the messages of the outbox behind the given one, in order.
func (s *Store) Unsent(ctx context.Context, after int64, limit int) ([]Outgoing, error) {
	rows, err := s.pool.Query(ctx, `SELECT seq, event_id, subject, ttl, message, coalesce(manifest_of::text, '') FROM outbox
		WHERE seq > $1 ORDER BY seq LIMIT $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	unsent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Outgoing, err error) {
		return o, row.Scan(&o.Seq, &o.EventID, &o.Subject, &o.TTL, &o.Message, &o.ManifestOf)
	})
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return unsent, nil
}

// Sent removes messages that NATS has. If the removal is lost they are sent once
// more, which is harmless; so it does not wait for the disk. The error wraps
// ErrFenced when another queue-manager has become leader.
func (s *Store) Sent(ctx context.Context, epoch int64, seqs []int64) error {
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
		batch.Queue(`DELETE FROM outbox WHERE seq = ANY($1)`, seqs)
	})
	if err != nil {
		return fmt.Errorf("remove %d sent messages from the outbox: %w", len(seqs), err)
	}
	return nil
}
