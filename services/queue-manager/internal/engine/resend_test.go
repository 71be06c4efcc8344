package engine

import (
	"slices"
	"strconv"
	"testing"
)

// TestCommandsAreSentAgainInParts: no decision has all commands of a stream that was lost, and
// each is sent again once.
func TestCommandsAreSentAgainInParts(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 2*resendLimit + 3 {
		all = append(all, strconv.Itoa(i))
	}
	var r resends
	if r.left() != nil {
		t.Error("an empty list is ready")
	}
	r.replace(all)
	var sent []string
	parts := 0
	for ; r.left() != nil; parts++ {
		part := r.next()
		if len(part) == 0 || len(part) > resendLimit {
			t.Fatalf("a part has %d commands; want 1 to %d", len(part), resendLimit)
		}
		sent = append(sent, part...)
	}
	if parts != 3 || !slices.Equal(sent, all) {
		t.Errorf("%d commands in %d parts; want %d in 3, in their order", len(sent), parts, len(all))
	}
	r.replace(all[:1])
	r.replace(all[1:3])
	if got := r.next(); !slices.Equal(got, all[1:3]) {
		t.Errorf("after another comparison %v are sent again; want %v", got, all[1:3])
	}
}
