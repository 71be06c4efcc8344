package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

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

// Encode makes the messages of the outbox. A command to start a gang leaves its
// manifest to CheckEpochAndAddManifests.
func Encode(messages []state.Message) ([]Outgoing, error) {
	outgoing := make([]Outgoing, len(messages))
	for i, m := range messages {
		encoded, err := event.Marshal(m.ID, event.QueueManagerSource, m.At, m.Traceparent, m.Payload)
		if err != nil {
			return nil, err
		}
		outgoing[i] = Outgoing{EventID: m.ID, Subject: m.Subject, TTL: m.TTL, Message: encoded}
		if command, ok := m.Payload.(*event.GangCommand); ok && command.NeedsManifest() && len(command.Manifest) == 0 {
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
	ids, subjects, manifests := make([]string, n), make([]string, n), make(uuids, n)
	ttls, messages := make([]time.Duration, n), make(manyBytes, n)
	for i, m := range outgoing {
		ids[i], subjects[i], ttls[i], messages[i] = m.EventID, m.Subject, m.TTL, m.Message
		manifests[i] = uuidText(m.ManifestOf)
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

// CheckEpochAndAddManifests prepares messages for publication. It checks that the epoch is
// still the present one, and puts the manifests into commands. The error wraps ErrFenced when
// another epoch has begun, and ErrCommitMissing when the database was restored to an older
// state. A command whose workload has ended meanwhile stays without its manifest: a later
// command follows it.
func (s *Store) CheckEpochAndAddManifests(ctx context.Context, epoch int64, messages []Outgoing) error {
	reached := s.hasReached()
	var current, last int64
	if err := s.pool.QueryRow(ctx, `SELECT epoch, `+lastVersion+` FROM leader`).Scan(&current, &last); err != nil {
		return fmt.Errorf("read the epoch: %w", err)
	}
	if current != epoch {
		return fmt.Errorf("publish in epoch %d, but it is %d: %w", epoch, current, ErrFenced)
	}
	if err := checkReached(last, reached); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
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
		uuidsOf(slices.Collect(maps.Keys(wanted))))
	if err != nil {
		return fmt.Errorf("read manifests of %d workloads: %w", len(wanted), err)
	}
	var id workload.ID
	var manifest []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &manifest}, func() error {
		for _, i := range wanted[id] {
			messages[i].Message, messages[i].ManifestOf = event.WithManifest(messages[i].Message, manifest), ""
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read manifests of %d workloads: %w", len(wanted), err)
	}
	return nil
}

// Unsent returns the messages of the outbox behind the given one whose subjects
// begin with the prefix, in order.
func (s *Store) Unsent(ctx context.Context, prefixes []string, after int64, limit int) ([]Outgoing, error) {
	rows, err := s.pool.Query(ctx, `SELECT seq, event_id, subject, ttl, message, coalesce(manifest_of::text, ''), `+lastVersion+` FROM outbox
		WHERE seq > $1 AND subject ^@ ANY($3) ORDER BY seq LIMIT $2`, after, limit, prefixes)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	var last int64
	unsent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Outgoing, err error) {
		return o, row.Scan(&o.Seq, &o.EventID, &o.Subject, &o.TTL, &o.Message, &o.ManifestOf, &last)
	})
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	s.reach(last) // its writer may not have had the answer that it is written
	return unsent, nil
}

// Sent removes messages that NATS has, and remembers with them what their stream
// has had: a stream that has lost its end would else be taken for a whole one by
// the next term. If the removal is lost they are sent once more, which is harmless;
// so it does not wait for the disk. A watermark without a time is not known. The error
// wraps ErrFenced when another queue-manager has become leader, and ErrCommitMissing when the
// database was restored to an older state.
func (s *Store) Sent(ctx context.Context, epoch int64, seqs []int64, stream string, watermark Watermark) error {
	reached := s.hasReached()
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
		queueReached(batch, reached)
		batch.Queue(`DELETE FROM outbox WHERE seq = ANY($1) AND `+lastVersion+` >= $2`, seqs, reached)
		if !watermark.Created.IsZero() {
			queueWatermark(batch, stream, watermark, reached)
		}
	})
	if err != nil {
		return fmt.Errorf("remove %d sent messages from the outbox: %w", len(seqs), err)
	}
	return nil
}

// MoveToUndelivered moves a message that NATS never accepts from the outbox to the table
// undelivered, where it blocks no other.
func (s *Store) MoveToUndelivered(ctx context.Context, epoch int64, message Outgoing, reason string) error {
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`WITH gone AS (DELETE FROM outbox WHERE seq = $1 RETURNING seq, event_id, subject, message)
			INSERT INTO undelivered (seq, event_id, subject, message, reason) SELECT seq, event_id, subject, message, $2 FROM gone
			ON CONFLICT DO NOTHING`, message.Seq, reason)
	})
	if err != nil {
		return fmt.Errorf("move message %q to the table undelivered: %w", message.EventID, err)
	}
	return nil
}

// KeepUndelivered keeps a message of no outbox that NATS refuses, for people to look at:
// once, whatever the number of terms that find it.
func (s *Store) KeepUndelivered(ctx context.Context, epoch int64, message Outgoing, reason string) error {
	err := s.transact(ctx, epoch, func(batch *pgx.Batch) {
		batch.Queue(`INSERT INTO undelivered (seq, event_id, subject, message, reason)
			SELECT nextval(pg_get_serial_sequence('outbox', 'seq')), $1, $2, $3, $4
			WHERE NOT EXISTS (SELECT FROM undelivered WHERE event_id = $1)`, message.EventID, message.Subject, message.Message, reason)
	})
	if err != nil {
		return fmt.Errorf("keep message %q as undelivered: %w", message.EventID, err)
	}
	return nil
}
