package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"muster.dev/muster/pkg/state"
)

// checkpointPart is a part of a checkpoint.
type checkpointPart struct {
	Nodes     []state.StoredNode     `json:"nodes,omitempty"`
	Workloads []state.StoredWorkload `json:"workloads,omitempty"`
}

// partSize is how many workloads a part of a checkpoint has.
const partSize = 1000

// NeedsCheckpoint reports whether decisions from the given version on cannot be replayed
// with what is kept: the last ones end at another version, or the last checkpoint is
// older than the given age.
func (s *Store) NeedsCheckpoint(ctx context.Context, version int64, age time.Duration) (needed bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM bases WHERE part = 0 AND at > now() - $1::interval)
		OR $2 IS DISTINCT FROM (SELECT version FROM decisions ORDER BY epoch DESC, number DESC LIMIT 1)`, age, version).Scan(&needed)
	if err != nil {
		return false, fmt.Errorf("check whether decisions need a checkpoint: %w", err)
	}
	return needed, nil
}

// Snapshot is the ledger as it was at one moment, read on a connection of its own.
type Snapshot struct {
	store *Store
	conn  *pgx.Conn
	tx    pgx.Tx
}

// Snapshot keeps the ledger of this moment readable until Close.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig.Copy())
	if err != nil {
		return nil, fmt.Errorf("connect to read the ledger: %w", err)
	}
	p := &Snapshot{store: s, conn: conn}
	if p.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err == nil {
		_, err = p.tx.Exec(ctx, `SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)
			FROM leader`) // reading anything fixes the moment
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("begin to read the ledger: %w", err)
	}
	return p, nil
}

// Close ends the reading.
func (s *Snapshot) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// WriteCheckpoint stores the snapshot as the checkpoint of the epoch that begins on it: all of
// it, or nothing.
//
// Its transaction is long, so it does not lock the leader's row, which a successor
// would have to wait for: each of its statements compares the epoch by itself.
func (s *Snapshot) WriteCheckpoint(ctx context.Context, epoch, version int64) error {
	ctx = patient(ctx)
	err := pgx.BeginFunc(ctx, s.store.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('muster.epoch', $1::text, true), set_config('idle_in_transaction_session_timeout', '60s', true)`,
			fmt.Sprint(epoch)); err != nil {
			return err
		}
		parts := 0
		keep := func(part checkpointPart) error {
			encoded, err := json.Marshal(part)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO bases (epoch, part, version, at, content) VALUES ($1, $2, $3, now(), $4)`,
				epoch, parts, version, s2.EncodeBetter(nil, encoded))
			parts++
			return err
		}
		nodes, err := loadNodes(ctx, s.tx)
		if err != nil {
			return err
		}
		part := checkpointPart{Nodes: nodes}
		err = newReader().eachLive(ctx, s.tx, nil, func(w state.StoredWorkload) error {
			part.Workloads = append(part.Workloads, w)
			if len(part.Workloads) < partSize {
				return nil
			}
			full := part
			part = checkpointPart{}
			return keep(full)
		})
		if err != nil || len(part.Workloads)+len(part.Nodes) == 0 && parts > 0 {
			return err
		}
		return keep(part)
	})
	if err != nil {
		return fmt.Errorf("keep the checkpoint of epoch %d: %w", epoch, err)
	}
	return nil
}
