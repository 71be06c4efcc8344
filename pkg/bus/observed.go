package bus

import (
	"context"
	"fmt"
	"time"
)

// The streams of observations have one message of each subject and no other bound. A
// stolen key of a cluster could fill NATS' disk with subjects that it makes up. So all
// messages of a cluster are purged that has more of them than a cluster of the largest
// size that Muster takes. An honest watcher or dispatcher notices that its messages are
// gone and publishes them again.

// ObservedLimits bound what a stream of observations keeps of one cluster.
type ObservedLimits struct {
	Bytes    uint64
	Subjects uint64
}

// DefaultObservedLimits are several times what 10,000 nodes and 200,000 pods need, and
// twice the workloads that end in an hour, for which their last messages are kept, at
// 100 a second.
func DefaultObservedLimits() ObservedLimits {
	return ObservedLimits{Bytes: 1 << 30, Subjects: 1_000_000}
}

// observedAgain is the pause after a look at all subjects that purged nothing: many
// clusters together may have more than one of them may.
const observedAgain = time.Minute

// KeepObserved purges clusters beyond the limits until ctx ends, and reports each one,
// or the error of a look that failed.
func (b *Bus) KeepObserved(ctx context.Context, limits ObservedLimits, report func([]Cut, error)) error {
	return b.keepRoom(ctx, []string{CapacityStream, StatusStream}, report, func(ctx context.Context, stream string) ([]Cut, time.Duration, error) {
		return b.boundObserved(ctx, stream, limits)
	})
}

// boundObserved purges the clusters that have more than the limits in a stream. It
// looks at the subjects only if the stream as a whole has more.
func (b *Bus) boundObserved(ctx context.Context, name string, limits ObservedLimits) (purged []Cut, pause time.Duration, err error) {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, 0, fmt.Errorf("read the state of stream %s: %w", name, err)
	}
	if state := stream.CachedInfo().State; state.Bytes <= limits.Bytes && state.NumSubjects <= limits.Subjects {
		return nil, 0, nil
	}
	pause = observedAgain // until a cluster was purged
	clusters, _, err := owners(ctx, stream)
	if err != nil {
		return nil, pause, err
	}
	for _, c := range clusters {
		if c.mean, err = b.meanOfLast(ctx, name, c.sample); err != nil {
			return purged, pause, err
		}
		if c.subjects <= limits.Subjects && c.bytes() <= limits.Bytes {
			continue
		}
		lost, err := cut(ctx, stream, c, 0)
		if err != nil {
			return purged, pause, err
		}
		purged, pause = append(purged, lost), 0
	}
	return purged, pause, nil
}

// meanOfLast is the mean size of the last messages of some subjects; 0 when there is none
// any more. The right to read those is narrower than the one that meanSize needs.
func (b *Bus) meanOfLast(ctx context.Context, stream string, subjects []string) (uint64, error) {
	sum, got := uint64(0), uint64(0)
	for _, subject := range subjects {
		last, err := b.LastMessage(ctx, stream, subject)
		if err != nil {
			return 0, err
		}
		if last != nil {
			sum, got = sum+uint64(len(last.Data)+len(subject)), got+1
		}
	}
	if got == 0 {
		return 0, nil
	}
	return sum / got, nil
}
