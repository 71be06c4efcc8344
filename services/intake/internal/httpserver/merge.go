package httpserver

import (
	"context"
	"sync"

	"muster.dev/muster/pkg/bus"
)

// merge hands over what several followings of one stream deliver: first what is past, in the
// order of the stream, then what comes, as it comes. ends is closed when all that is past has
// been handed over; deliveries, when ctx ends or a following does. NATS lets intake read either
// one subject at a time or all.
func merge(ctx context.Context, followings []*bus.Following) (deliveries <-chan bus.Delivery, ends <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	out, past := make(chan bus.Delivery), make(chan struct{})
	m := &merging{out: out, heads: make([]*bus.Delivery, len(followings))}
	go func() {
		defer close(out)
		defer cancel()
		if !m.past(ctx, followings) {
			return
		}
		close(past)
		var running sync.WaitGroup
		for _, f := range followings {
			running.Go(func() {
				defer cancel()
				for {
					select {
					case <-ctx.Done():
						return
					case d, open := <-f.C:
						if !open || !m.hand(ctx, d) {
							return
						}
					}
				}
			})
		}
		running.Wait()
	}()
	return out, past
}

// merging has the next delivery of each following while what is past is merged.
type merging struct {
	out   chan<- bus.Delivery
	heads []*bus.Delivery
}

// past merges what is past, and reports whether all of it was handed over.
func (m *merging) past(ctx context.Context, followings []*bus.Following) (complete bool) {
	for i, f := range followings {
		if !m.next(ctx, i, f) {
			return false
		}
	}
	for {
		first := -1
		for i, d := range m.heads {
			if d != nil && (first < 0 || d.Sequence < m.heads[first].Sequence) {
				first = i
			}
		}
		if first < 0 {
			return true
		}
		if !m.hand(ctx, *m.heads[first]) || !m.next(ctx, first, followings[first]) {
			return false
		}
	}
}

// next waits for the next delivery of a following, or until it has no more that is past. It
// reports whether to go on.
func (m *merging) next(ctx context.Context, i int, f *bus.Following) bool {
	m.heads[i] = nil
	var open bool
	var d bus.Delivery
	select {
	case <-ctx.Done():
		return false
	case d, open = <-f.C:
	case <-f.CaughtUp:
		if len(f.C) == 0 {
			return true
		}
		d, open = <-f.C
	}
	if open {
		m.heads[i] = &d
	}
	return open
}

func (m *merging) hand(ctx context.Context, d bus.Delivery) bool {
	select {
	case m.out <- d:
		return true
	case <-ctx.Done():
		return false
	}
}
