package reconcile

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
)

// Where the API server serves v1beta1 alone, a request is made, followed and deleted by that.
func TestARequestOfV1beta1(t *testing.T) {
	t.Parallel()
	p := play(t)
	p.cluster.unserved = requestVersion
	p.Command(provisionCommand(1))
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	id := bundle.Identity{APIVersion: requestBeta, Kind: requestKind, Namespace: "n", Name: oneRequest}
	request := p.cluster.items[id]
	if request == nil || request.Content["apiVersion"] != requestBeta {
		t.Fatalf("there is %+v, want a request of %s; created: %v", request, requestBeta, p.cluster.created)
	}
	p.wantRequest(t, event.RequestPending, "")
	request.Content["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Accepted", "status": "True"},
		map[string]any{"type": "Provisioned", "status": "True", "message": "all nodes are there"},
	}}
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	p.wantRequest(t, event.RequestProvisioned, "all nodes are there")

	forgotten := provisionCommand(2)
	forgotten.State = event.Forgotten
	p.Command(forgotten)
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	slices.Sort(p.cluster.deleted)
	if want := []string{oneTemplate, oneRequest}; !slices.Equal(p.cluster.deleted, want) {
		t.Errorf("deleted: %v, want %v", p.cluster.deleted, want)
	}
}
