package state

import (
	"testing"
	"unsafe"
)

// A million workloads may wait, and each has an entry. Up to 512 bytes the collector
// of garbage goes over them a span at a time; a larger one takes 576 bytes and a look
// of its own.
func TestAnEntryIsSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(entry{}); size > 512 {
		t.Errorf("an entry has %d bytes, want at most 512: what only workloads need that have been admitted belongs into attemptState", size)
	}
}
