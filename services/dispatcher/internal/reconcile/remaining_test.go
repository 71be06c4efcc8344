package reconcile

import (
	"encoding/json"
	"maps"
	"testing"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAWrappedJobReportsThePodsThatItNeedsYet: the places of pods that have succeeded are given
// back, those of another wrapped object are kept.
func TestAWrappedJobReportsThePodsThatItNeedsYet(t *testing.T) {
	t.Parallel()
	const spec = `"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 4, "completions": 4, "template": {"spec": {}}}`
	var b bundle.Bundle
	for _, name := range []string{"a", "b"} {
		b.Items = append(b.Items, bundle.Item{
			MakesPods: true, Object: json.RawMessage(`{` + spec + `, "metadata": {"name": "` + name + `"}}`),
			Templates: []bundle.Template{{Path: []string{"spec", "template"}, PodSet: name}},
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
	if err := p.see(t, 2); err != nil || !p.status.Created || p.status.Sizes != nil {
		t.Fatalf("the status is %+v, %v", p.status, err)
	}
	for id, item := range p.cluster.items {
		status := `{}`
		if id.Name == "a" {
			status = `{"succeeded": 3, "active": 1}`
		}
		if err := json.Unmarshal([]byte(`{`+spec+`, "status": `+status+`}`), &item.Content); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"a": 1}
	if err := p.see(t, 1); err != nil || !maps.Equal(p.status.Sizes, want) || !maps.Equal(p.status.Keeps, want) {
		t.Errorf("reported are %v and %v, %v; want %v", p.status.Sizes, p.status.Keeps, err, want)
	}
}
