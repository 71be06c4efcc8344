package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// source is the CloudEvents source of what queue-manager says.
const source = "muster/queue-manager"

// Outgoing is a message of the outbox: written, to be published.
type Outgoing struct {
	Seq     int64
	EventID string
	Subject string
	TTL     time.Duration
	Message []byte
}

// Commit writes the changes in one transaction and returns the messages that
// may now leave, in order. Errors wrap ErrFenced or ErrBadData; after any error
// nothing was written, but for a connection lost during the commit itself, when
// it is unknown: read anew.
func (s *Store) Commit(ctx context.Context, changes book.Changes) ([]Outgoing, error) {
	outgoing, err := s.encode(ctx, changes)
	if err != nil {
		return nil, fmt.Errorf("commit changes: %w", err)
	}
	err = s.transact(ctx, changes.Epoch, func(batch *pgx.Batch) {
		queueNodes(batch, changes.Nodes)
		queueFreed(batch, changes.Freed)
		queueUpdated(batch, changes.Updated) // before the new ones, who may have their names
		queueAdded(batch, changes.Added)
		queueReserved(batch, changes.Reserved)
		queueDropped(batch, changes.Nodes)
		queueHistory(batch, changes.Epoch, changes.History)
		queueOutbox(batch, outgoing)
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 && refused.Code[:2] == "22" {
		return nil, fmt.Errorf("commit changes: %w: %w", ErrBadData, err)
	}
	if err != nil {
		return nil, fmt.Errorf("commit changes: %w", err)
	}
	return outgoing, nil
}

// encode makes the messages of the outbox, commands completed by the manifest.
func (s *Store) encode(ctx context.Context, changes book.Changes) ([]Outgoing, error) {
	manifests, err := s.manifestsFor(ctx, changes)
	if err != nil {
		return nil, err
	}
	outgoing := make([]Outgoing, len(changes.Messages))
	for i, m := range changes.Messages {
		if command, ok := m.Payload.(*event.GangDesired); ok && command.State == event.Present {
			command.Manifest = manifests[command.Workload]
		}
		envelope, err := event.New(m.ID, source, m.At, m.Payload)
		if err != nil {
			return nil, err
		}
		encoded, err := envelope.Encode()
		if err != nil {
			return nil, err
		}
		outgoing[i] = Outgoing{EventID: m.ID, Subject: m.Subject, TTL: m.TTL, Message: encoded}
	}
	return outgoing, nil
}

// manifestsFor returns the manifests of the workloads that are commanded to be
// present: of new ones from the changes, of older ones from their rows, in which
// they never change.
func (s *Store) manifestsFor(ctx context.Context, changes book.Changes) (map[workload.ID]json.RawMessage, error) {
	manifests := map[workload.ID]json.RawMessage{}
	for _, added := range changes.Added {
		manifests[added.ID] = added.Manifest
	}
	var stored []workload.ID
	for _, m := range changes.Messages {
		if command, ok := m.Payload.(*event.GangDesired); ok && command.State == event.Present && manifests[command.Workload] == nil {
			stored = append(stored, command.Workload)
		}
	}
	if len(stored) == 0 {
		return manifests, nil
	}
	rows, err := s.pool.Query(ctx, `SELECT id, manifest FROM workloads WHERE id = ANY($1::uuid[])`, texts(stored))
	if err != nil {
		return nil, fmt.Errorf("read manifests of %d workloads: %w", len(stored), err)
	}
	var id workload.ID
	var manifest json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&id, &manifest}, func() error {
		manifests[id] = append(json.RawMessage(nil), manifest...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read manifests of %d workloads: %w", len(stored), err)
	}
	return manifests, nil
}

func queueOutbox(batch *pgx.Batch, outgoing []Outgoing) {
	if len(outgoing) == 0 {
		return
	}
	ids, subjects := make([]string, len(outgoing)), make([]string, len(outgoing))
	ttls, messages := make([]time.Duration, len(outgoing)), make([][]byte, len(outgoing))
	for i, o := range outgoing {
		ids[i], subjects[i], ttls[i], messages[i] = o.EventID, o.Subject, o.TTL, o.Message
	}
	batch.Queue(`INSERT INTO outbox (event_id, subject, ttl, message)
		SELECT id, subject, ttl, message
		FROM unnest($1::text[], $2::text[], $3::interval[], $4::bytea[]) WITH ORDINALITY AS m (id, subject, ttl, message, place)
		ORDER BY place RETURNING seq`, ids, subjects, ttls, messages).
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

// Unsent returns the messages of the outbox behind the given one, in order.
func (s *Store) Unsent(ctx context.Context, after int64, limit int) ([]Outgoing, error) {
	rows, err := s.pool.Query(ctx, `SELECT seq, event_id, subject, ttl, message FROM outbox
		WHERE seq > $1 ORDER BY seq LIMIT $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	unsent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Outgoing, err error) {
		return o, row.Scan(&o.Seq, &o.EventID, &o.Subject, &o.TTL, &o.Message)
	})
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return unsent, nil
}

// Sent removes messages that NATS has. If the removal is lost they are sent once
// more, which is harmless; so it does not wait for the disk.
func (s *Store) Sent(ctx context.Context, seqs []int64) error {
	batch := &pgx.Batch{}
	batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
	batch.Queue(`DELETE FROM outbox WHERE seq = ANY($1)`, seqs)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("remove %d sent messages from the outbox: %w", len(seqs), err)
	}
	return nil
}
