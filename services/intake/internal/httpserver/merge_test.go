package httpserver

import (
	"context"
	"slices"
	"testing"

	"muster.dev/muster/pkg/bus"
)

// What is past of several queues comes in the order of the stream, before what comes; a
// following that ends, ends all.
func TestQueuesAreMergedInTheOrderOfTheStream(t *testing.T) {
	t.Parallel()
	first, second := make(chan bus.Delivery, 8), make(chan bus.Delivery, 8)
	caught, late := make(chan struct{}), make(chan struct{})
	for _, sequence := range []uint64{2, 5, 6} {
		first <- bus.Delivery{Sequence: sequence}
	}
	close(caught)
	out, ends := merge(t.Context(), []*bus.Following{{C: first, CaughtUp: caught}, {C: second, CaughtUp: late}})
	second <- bus.Delivery{Sequence: 3}
	var got []uint64
	for range 2 {
		got = append(got, (<-out).Sequence)
	}
	second <- bus.Delivery{Sequence: 4}
	close(late)
	for range 3 {
		got = append(got, (<-out).Sequence)
	}
	<-ends
	second <- bus.Delivery{Sequence: 9}
	got = append(got, (<-out).Sequence)
	first <- bus.Delivery{Sequence: 8} // what comes does not wait for the others
	got = append(got, (<-out).Sequence)
	if want := []uint64{2, 3, 4, 5, 6, 9, 8}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	close(first)
	if d, open := <-out; open {
		t.Errorf("after the end of a queue comes %d", d.Sequence)
	}
}

func TestAMergeEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out, ends := merge(ctx, []*bus.Following{{C: make(chan bus.Delivery), CaughtUp: make(chan struct{})}})
	cancel()
	if _, open := <-out; open {
		t.Error("something comes of an empty stream")
	}
	if isClosed(ends) {
		t.Error("the past counts as complete")
	}
}
