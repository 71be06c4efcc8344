package index

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

type thing struct{ name string }

// TestIsASetOfNames compares an index with a map. Mostly every
// name has a hash of its own; here many share one, too.
func TestIsASetOfNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := New(rapid.IntRange(0, 20).Draw(t, "expected"), func(x *thing) string { return x.name })
		if rapid.Bool().Draw(t, "few hashes") {
			r.hash = func(name string) uint64 { return uint64(len(name)) }
		}
		model := map[string]*thing{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "name"))
			if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				r.Delete(name)
				delete(model, name)
			} else {
				model[name] = &thing{name}
				r.Put(model[name])
			}
			check(t, r, model)
		}
	})
}

func check(t *rapid.T, r *Index[string, thing], model map[string]*thing) {
	if r.Len() != len(model) {
		t.Fatalf("there are %d, want %d", r.Len(), len(model))
	}
	for i := range 31 {
		name := fmt.Sprint(i)
		if got := r.Get(name); got != model[name] {
			t.Fatalf("%s is %v, want %v", name, got, model[name])
		}
		if other := (&thing{name}); r.Has(other) {
			t.Fatalf("the index has another value named %s", name)
		}
	}
	seen := map[*thing]bool{}
	for x := range r.All() {
		if seen[x] || model[x.name] != x || !r.Has(x) {
			t.Fatalf("%v is gone over, twice: %t", x, seen[x])
		}
		seen[x] = true
	}
	if len(seen) != len(model) {
		t.Fatalf("%d of %d are gone over", len(seen), len(model))
	}
}
