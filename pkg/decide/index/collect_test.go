package index

import (
	"fmt"
	"runtime"
	"testing"
)

// BenchmarkCollect is a round of the collector of garbage with a million things that
// are found by name: by a map, which is the baseline, and by an index.
func BenchmarkCollect(b *testing.B) {
	const many = 1_000_000
	things := make([]*thing, many)
	for i := range things {
		things[i] = &thing{fmt.Sprintf("%036d", i)}
	}
	rounds := func(b *testing.B, held any) {
		for b.Loop() {
			runtime.GC()
		}
		runtime.KeepAlive(held)
		runtime.KeepAlive(things)
	}
	b.Run("neither", func(b *testing.B) { rounds(b, nil) })
	b.Run("map", func(b *testing.B) {
		byName := make(map[string]*thing, many)
		for _, x := range things {
			byName[x.name] = x
		}
		rounds(b, byName)
	})
	b.Run("roster", func(b *testing.B) {
		r := New(many, func(x *thing) string { return x.name })
		for _, x := range things {
			r.Put(x)
		}
		rounds(b, r)
	})
}
