package reconcile

import (
	"context"
	"fmt"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

func TestTheSweepRemovesRequestsOfNoWorkload(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record  *workload.Record
		removed bool
	}{
		"unknown":        {nil, true},
		"it has another": {&workload.Record{Provisioning: &workload.Provisioning{Open: true, Name: "another"}}, true},
		"it is over":     {&workload.Record{Provisioning: &workload.Provisioning{Name: oneRequest}}, true},
		"it is wanted":   {&workload.Record{Provisioning: &workload.Provisioning{Open: true, Name: oneRequest}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.items[requestID(oneRequest)] = &kubernetes.Wrapped{Object: kubernetes.Object{
				Kind: requestKind, Namespace: "n", Name: oneRequest, UID: "uid-" + oneRequest, Workload: "w", Attempt: 1,
			}}
			p.Sweep(t.Context(), func(context.Context, workload.ID) (*workload.Record, error) { return c.record, nil })
			if got := len(p.cluster.deleted) == 1; got != c.removed {
				t.Errorf("deleted: %v, want the request deleted: %v", p.cluster.deleted, c.removed)
			}
		})
	}
}

// A sweep that looked up all objects that a tenant has labelled would not come to others.
func TestTheSweepLooksUpFewRequestsOfANamespace(t *testing.T) {
	t.Parallel()
	p := play(t)
	for i := range 3 * mostLookups {
		name := fmt.Sprintf("forged-%d", i)
		p.cluster.items[requestID(name)] = &kubernetes.Wrapped{Object: kubernetes.Object{
			Kind: requestKind, Namespace: "n", Name: name, UID: "uid-" + name, Workload: "w", Attempt: 1,
		}}
	}
	asked := 0
	p.Sweep(t.Context(), func(context.Context, workload.ID) (*workload.Record, error) { asked++; return nil, nil })
	if asked != mostLookups || len(p.cluster.deleted) != mostLookups {
		t.Errorf("%d requests were looked up and %d deleted, want %d of each", asked, len(p.cluster.deleted), mostLookups)
	}
}
