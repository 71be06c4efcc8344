package reconcile

import (
	"encoding/json"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestTheOldestCheckpointOfWrappedObjectsCounts: what an eviction loses goes back to where the
// last of the objects with pods can go on. While one of them has not reported, nothing is known.
func TestTheOldestCheckpointOfWrappedObjectsCounts(t *testing.T) {
	t.Parallel()
	early := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	late := early.Add(time.Hour)
	for name, c := range map[string]struct {
		saved map[string]time.Time
		want  time.Time
	}{
		"none reports":                {nil, time.Time{}},
		"one reports":                 {map[string]time.Time{"a": early}, time.Time{}},
		"all with pods report":        {map[string]time.Time{"a": late, "b": early}, early},
		"one without pods reports":    {map[string]time.Time{"c": early}, time.Time{}},
		"one without pods is earlier": {map[string]time.Time{"a": late, "b": late, "c": early}, late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bundle.Bundle
			for _, name := range []string{"a", "b", "c"} {
				b.Items = append(b.Items, bundle.Item{
					MakesPods: name != "c", Object: json.RawMessage(`{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "` + name + `"}}`),
				})
			}
			manifest, err := b.Encode()
			if err != nil {
				t.Fatal(err)
			}
			p := play(t)
			p.Command(&event.GangCommand{
				Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Order: 1, State: event.Present, Kind: workload.KindAppWrapper,
				Namespace: "n", Name: "w", Manifest: manifest, ObjectPolicy: workload.ObjectPolicy{Kinds: []string{workload.AllKinds}},
			})
			if err := p.see(t, 2); err != nil || !p.status.Created {
				t.Fatalf("the status is %+v, %v", p.status, err)
			}
			for id, item := range p.cluster.items {
				item.LastCheckpoint = c.saved[id.Name]
			}
			if err := p.see(t, 1); err != nil || !p.status.LastCheckpoint.Equal(c.want) {
				t.Errorf("the last checkpoint is reported at %s, %v; want %s", p.status.LastCheckpoint, err, c.want)
			}
		})
	}
}
