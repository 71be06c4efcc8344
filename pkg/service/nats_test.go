package service

import (
	"errors"
	"testing"

	"go.uber.org/zap"
)

// fakeNATS answers as it is set.
type fakeNATS struct{ ready, storage error }

func (n *fakeNATS) Ready() error   { return n.ready }
func (n *fakeNATS) Storage() error { return n.storage }

// TestAwaitNATS: a service is ready only while NATS is connected and stores messages, and
// the gauge shows the latter.
func TestAwaitNATS(t *testing.T) {
	t.Parallel()
	lost, full := errors.New("not connected"), errors.New("make room and restart it")
	nats := &fakeNATS{}
	r := NewRuntime(zap.NewNop(), "intake")
	r.AwaitNATS(nats)
	for _, step := range []struct {
		ready, storage error
		notStoring     float64
	}{
		{},
		{storage: full, notStoring: 1},
		{},
		{ready: lost},
	} {
		nats.ready, nats.storage = step.ready, step.storage
		unmet := r.Health.Ready()
		if unmet["nats"] != step.ready || unmet["nats storage"] != step.storage {
			t.Errorf("with %+v the service is not ready because of %v", step, unmet)
		}
		families, err := r.Metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, family := range families {
			if family.GetName() != "muster_nats_not_storing" {
				continue
			}
			found = true
			if got := family.GetMetric()[0].GetGauge().GetValue(); got != step.notStoring {
				t.Errorf("with %+v %s is %v", step, family.GetName(), got)
			}
		}
		if !found {
			t.Fatal("there is no gauge")
		}
	}
}
