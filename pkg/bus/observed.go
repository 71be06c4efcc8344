package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

const (
	observedEvery = 2 * time.Second
	// observedAgain is the pause after a look at all subjects that purged nothing: many
	// clusters together may have more than one of them may.
	observedAgain = time.Minute
	// observedSamples are how many messages of a cluster tell its mean size.
	observedSamples = 16
)

// Purged is a cluster whose observations were purged from a stream.
type Purged struct {
	Stream, Cluster string
	Subjects, Bytes uint64 // bytes are an estimate
}

// KeepObserved purges clusters beyond the limits until ctx ends, and reports each one,
// or the error of a look that failed.
func (b *Bus) KeepObserved(ctx context.Context, limits ObservedLimits, report func([]Purged, error)) error {
	tick := time.NewTicker(observedEvery)
	defer tick.Stop()
	next := map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for _, stream := range []string{CapacityStream, StatusStream} {
			now := time.Now()
			if b.Ready() != nil || now.Before(next[stream]) {
				continue
			}
			purged, looked, err := b.boundObserved(ctx, stream, limits)
			if len(purged) > 0 || err != nil && ctx.Err() == nil {
				report(purged, err)
			}
			if looked && len(purged) == 0 {
				next[stream] = now.Add(observedAgain)
			}
		}
	}
}

// boundObserved purges the clusters that have more than the limits in a stream. It
// looks at the subjects only if the stream as a whole has more.
func (b *Bus) boundObserved(ctx context.Context, name string, limits ObservedLimits) (purged []Purged, looked bool, err error) {
	stream, err := b.js.Stream(ctx, name)
	if err != nil {
		return nil, false, fmt.Errorf("look at stream %s: %w", name, err)
	}
	if state := stream.CachedInfo().State; state.Bytes <= limits.Bytes && state.NumSubjects <= limits.Subjects {
		return nil, false, nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, true, fmt.Errorf("list subjects of stream %s: %w", name, err)
	}
	clusters := map[string]*observed{}
	for subject := range info.State.Subjects {
		prefix := clusterPrefix(subject)
		if clusters[prefix] == nil {
			clusters[prefix] = &observed{}
		}
		clusters[prefix].add(subject)
	}
	for prefix, c := range clusters {
		size, err := b.sizeOf(ctx, stream, c)
		if err != nil {
			return purged, true, err
		}
		if c.subjects <= limits.Subjects && size <= limits.Bytes {
			continue
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(prefix+">")); err != nil {
			return purged, true, fmt.Errorf("purge %s> from stream %s: %w", prefix, name, err)
		}
		parts := strings.Split(prefix, ".")
		purged = append(purged, Purged{Stream: name, Cluster: parts[2], Subjects: c.subjects, Bytes: size})
	}
	return purged, true, nil
}

// clusterPrefix is the part of a subject that all subjects of its cluster have.
func clusterPrefix(subject string) string {
	parts := strings.SplitN(subject, ".", 4)
	return strings.Join(parts[:min(len(parts), 3)], ".") + "."
}

// observed are the subjects of a cluster, with some of them at random.
type observed struct {
	subjects uint64
	sample   []string
}

func (o *observed) add(subject string) {
	o.subjects++
	if len(o.sample) < observedSamples {
		o.sample = append(o.sample, subject)
	} else if at := rand.Uint64N(o.subjects); at < observedSamples {
		o.sample[at] = subject
	}
}

// sizeOf estimates the bytes of a cluster by the sizes of its sample.
func (b *Bus) sizeOf(ctx context.Context, stream jetstream.Stream, o *observed) (uint64, error) {
	sum, got := uint64(0), uint64(0)
	for _, subject := range o.sample {
		last, err := b.LastMessage(ctx, stream.CachedInfo().Config.Name, subject)
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
	return sum / got * o.subjects, nil
}
