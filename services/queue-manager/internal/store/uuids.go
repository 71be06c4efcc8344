package store

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuids are the texts of UUIDs, as a parameter uuid[]: sent as 16 bytes each, where
// Postgres would have to parse texts.
type uuids = pgtype.FlatArray[uuidText]

type uuidText string

// UUIDValue implements pgtype.UUIDValuer. The error wraps ErrBadData.
func (t uuidText) UUIDValue() (pgtype.UUID, error) {
	if t == "" {
		return pgtype.UUID{}, nil // NULL
	}
	parsed, err := uuid.Parse(string(t))
	if err != nil {
		return pgtype.UUID{}, fmt.Errorf("%w: %q is no UUID: %w", ErrBadData, string(t), err)
	}
	return pgtype.UUID{Bytes: parsed, Valid: true}, nil
}

func uuidsOf[T ~string](ids []T) uuids {
	all := make(uuids, len(ids))
	for i, id := range ids {
		all[i] = uuidText(id)
	}
	return all
}
