package sim

import "testing"

// A term that begins while a cluster is silent admits nothing there, and all is well when its
// capacity-watcher is back.
func TestATermBeginsInSilence(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		if r := Run(Options{Seed: seed, Script: silentBefore()}); r.Breach != nil {
			t.Errorf("seed %d: %s", seed, r.Breach)
		}
	}
}
