package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/manifest/masked"
	"muster.dev/muster/pkg/message/query"
)

// Manifest returns the manifest of a workload, live or finished, for people: without its
// secrets.
func (s *Store) Manifest(ctx context.Context, r query.ManifestRequest) (query.ManifestAnswer, error) {
	if uuid.Validate(string(r.ID)) != nil {
		return query.ManifestAnswer{}, nil
	}
	var stored []byte
	err := s.pool.QueryRow(ctx, `SELECT manifest FROM manifests WHERE workload = $1::uuid
		UNION ALL SELECT manifest FROM archive WHERE id = $1::uuid LIMIT 1`, string(r.ID)).Scan(&stored)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && stored == nil {
		return query.ManifestAnswer{}, nil
	}
	if err != nil {
		return query.ManifestAnswer{}, fmt.Errorf("read the manifest of workload %q: %w", r.ID, err)
	}
	shown, hidden, err := masked.JSON(stored)
	if err != nil {
		return query.ManifestAnswer{}, fmt.Errorf("mask the manifest of workload %q: %w", r.ID, err)
	}
	return query.ManifestAnswer{Manifest: shown, Masked: hidden}, nil
}
