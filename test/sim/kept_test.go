package sim

import (
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
)

// TestWhatIsKeptOfNodesThatCome goes by their age: the check of what is kept rests on it.
func TestWhatIsKeptOfNodesThatCome(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		created map[string]time.Duration // after the request
		at      time.Duration
		want    []string
	}{
		"older than the request":      {map[string]time.Duration{"a": 0}, time.Minute, nil},
		"younger":                     {map[string]time.Duration{"a": time.Second, "b": -time.Second}, time.Minute, []string{"a"}},
		"younger than now":            {map[string]time.Duration{"a": time.Second, "b": 2 * time.Minute}, time.Minute, []string{"a"}},
		"just within five minutes":    {map[string]time.Duration{"a": time.Second}, keptFor, []string{"a"}},
		"five minutes ago":            {map[string]time.Duration{"a": time.Second}, keptFor + time.Second, nil},
		"kept by one that came later": {map[string]time.Duration{"a": time.Second, "b": 4 * time.Minute}, 8 * time.Minute, []string{"a", "b"}},
		"ten minutes ago":             {map[string]time.Duration{"a": time.Second, "b": 8 * time.Minute}, nodeKeptFor + time.Second, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &World{cluster: &cluster{created: map[string]time.Time{}}, disk: &ledger{nodes: map[admission.NodeKey]state.NodeRow{}}}
			w.check = newChecker(w)
			for name, after := range c.created {
				w.cluster.created[name] = since.Add(after)
				w.disk.nodes[admission.NodeKey{Cluster: clusterName, Name: name}] = state.NodeRow{Present: true}
			}
			if got := w.check.cameFor(since, since.Add(c.at)); !slices.Equal(got, c.want) {
				t.Errorf("kept are %v, want %v", got, c.want)
			}
		})
	}
}

// TestPlacesOfAClaim counts the pods that have a place on its nodes, and no more than are claimed.
func TestPlacesOfAClaim(t *testing.T) {
	t.Parallel()
	node := func(name string) admission.NodeKey { return admission.NodeKey{Cluster: clusterName, Name: name} }
	free := map[admission.NodeKey]resource.List{
		node("a"): {ruledResource: 4, "cpu": 3000}, node("b"): {ruledResource: 1, "cpu": 3000}, node("c"): {ruledResource: -2, "cpu": 3000}, node("d"): {ruledResource: 4, "cpu": 3000},
	}
	for name, c := range map[string]struct {
		claim claim
		want  int64
	}{
		"GPUs bound it":        {claim{9, resource.List{ruledResource: 2}, []string{"a", "b", "d"}}, 4},
		"CPU bounds it":        {claim{9, resource.List{ruledResource: 1, "cpu": 2000}, []string{"a", "d"}}, 2},
		"all have places":      {claim{3, resource.List{ruledResource: 1}, []string{"a", "d"}}, 3},
		"over-used nodes":      {claim{3, resource.List{ruledResource: 1}, []string{"c"}}, 0},
		"nodes not in use now": {claim{3, resource.List{ruledResource: 1}, []string{"e"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.claim.places(free); got != c.want {
				t.Errorf("%d places, want %d", got, c.want)
			}
		})
	}
}
