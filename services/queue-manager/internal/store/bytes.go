package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// manyBytes are a parameter bytea[] that may be large: the messages of a commit.
type manyBytes = pgtype.FlatArray[[]byte]

// useManyBytes has a connection make room for such a parameter at once. Growing bit
// by bit it would leave several times its size to the collector of garbage.
func useManyBytes(_ context.Context, conn *pgx.Conn) error {
	types := conn.TypeMap()
	if known, ok := types.TypeForOID(pgtype.ByteaArrayOID); ok {
		types.RegisterType(&pgtype.Type{Name: known.Name, OID: known.OID, Codec: manyBytesCodec{known.Codec}})
	}
	return nil
}

type manyBytesCodec struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c manyBytesCodec) PlanEncode(types *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	plan := c.Codec.PlanEncode(types, oid, format, value)
	if _, ok := value.(manyBytes); ok && plan != nil && format == pgtype.BinaryFormatCode {
		return roomy{plan}
	}
	return plan
}

type roomy struct{ plan pgtype.EncodePlan }

// Encode implements pgtype.EncodePlan.
func (r roomy) Encode(value any, encoded []byte) ([]byte, error) {
	size := 64 // of the frame
	for _, element := range value.(manyBytes) {
		size += 4 + len(element)
	}
	return r.plan.Encode(value, slices.Grow(encoded, size))
}
