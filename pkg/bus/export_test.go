package bus

import (
	"context"
	"time"
)

// BoundObserved looks once at what a stream keeps of each cluster.
func BoundObserved(ctx context.Context, b *Bus, stream string, limits ObservedLimits) ([]Cut, error) {
	purged, _, err := b.boundObserved(ctx, stream, limits)
	return purged, err
}

// CutHistory looks once whether a stream of history is nearly full.
func CutHistory(ctx context.Context, b *Bus, stream string) ([]Cut, error) {
	return b.cutHistory(ctx, stream)
}

// LevelOf is levelOf.
func LevelOf(sizes []uint64, bound uint64) uint64 { return levelOf(sizes, bound) }

// StorageAt is Storage at another time, of a connection that is ready.
func (b *Bus) StorageAt(now time.Time) error { return b.storage.Failure(now) }
