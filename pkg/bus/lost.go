package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// StreamReader reads what a stream has; a Bus is one. See Bus for the meaning of
// each.
type StreamReader interface {
	State(ctx context.Context, stream string) (StreamState, error)
	Subjects(ctx context.Context, stream, filter string) (map[string]bool, error)
}

// Lost returns the subjects, sorted, whose values were stored and that the stream
// does not have any more: it was purged, made again, or restored to an older state. A
// connection that stood all the time has nothing of that. The publisher is to
// publish these values again.
//
// Without list the stream's state alone is compared, which costs the server
// nothing: that misses values that were deleted from the middle of the stream.
// With list the subjects that match the filter are compared one by one.
func (v *Values) Lost(ctx context.Context, server StreamReader, filter string, list bool) ([]string, error) {
	v.mu.Lock()
	known, created := maps.Clone(v.ends), v.created
	v.mu.Unlock()
	state, err := server.State(ctx, v.stream)
	if err != nil {
		return nil, fmt.Errorf("compare what was published: %w", err)
	}
	first, last := ^uint64(0), uint64(0)
	for _, sequence := range known {
		first, last = min(first, sequence), max(last, sequence)
	}
	// A stream that was made again, or is shorter, may have older values.
	all := !created.IsZero() && !state.Created.Equal(created) || state.Last < last
	var present map[string]bool
	if !all {
		if !list && first >= state.First {
			v.note(state)
			return nil, nil
		}
		if present, err = server.Subjects(ctx, v.stream, filter); err != nil {
			return nil, fmt.Errorf("compare what was published: %w", err)
		}
	}
	v.note(state)
	var lost []string
	v.mu.Lock()
	defer v.mu.Unlock()
	for subject, sequence := range known {
		if present[subject] || v.ends[subject] != sequence { // or published again meanwhile
			continue
		}
		delete(v.ends, subject)
		lost = append(lost, subject)
	}
	slices.Sort(lost)
	return lost, nil
}

// note remembers which stream it was that has been compared.
func (v *Values) note(state StreamState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.created = state.Created
}
