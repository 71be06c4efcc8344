package engine

import (
	"context"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/state"
)

const (
	// submissionsEvery is how often the leader looks how long submissions wait for intake,
	// submissionsWithin bounds a look.
	submissionsEvery  = 5 * time.Second
	submissionsWithin = 2 * time.Second
)

// silences shows how long each part has been silent. Parts that nothing waits for any more
// are taken away; the others stay, because a gap in its series makes an alert start over.
func (m *Metrics) silences(all []state.Silence) {
	shown := make(map[state.Part]bool, len(all))
	for _, s := range all {
		shown[s.Part] = true
		m.heard.WithLabelValues(s.Cluster, s.Name).Set(s.For.Seconds())
	}
	for part := range m.shown {
		if !shown[part] {
			m.heard.DeleteLabelValues(part.Cluster, part.Name)
		}
	}
	m.shown = shown
}

// streamState is what package bus knows of a stream.
type streamState interface {
	State(ctx context.Context, stream string) (bus.StreamState, error)
}

// watchSubmissions reports from time to time how many seconds the oldest submission has
// waited for intake. While NATS does not answer it is silent: other metrics name NATS.
func watchSubmissions(ctx context.Context, nats streamState, every time.Duration, report func(seconds float64)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, submissionsWithin)
		found, err := nats.State(bounded, bus.SubmitStream)
		cancel()
		switch {
		case err != nil:
		case found.Oldest.IsZero():
			report(0)
		default:
			report(max(0, time.Since(found.Oldest).Seconds()))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
