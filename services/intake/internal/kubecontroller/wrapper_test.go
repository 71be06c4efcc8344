package kubecontroller

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAChangeOfTheTTLOnlyShortensIt: the submitted TTL, which was checked against the
// queue's limit, bounds every later value.
func TestAChangeOfTheTTLOnlyShortensIt(t *testing.T) {
	t.Parallel()
	submitted := func(ttl time.Duration) *workload.Record {
		return &workload.Record{Workload: workload.Workload{Life: workload.Life{Tolerance: &workload.Tolerance{SuccessTTL: workload.Duration(ttl)}}}}
	}
	hour, minute := time.Hour, time.Minute
	for name, c := range map[string]struct {
		written *time.Duration
		record  *workload.Record
		want    time.Duration // 0: for ever
	}{
		"as submitted":      {&minute, submitted(time.Minute), time.Minute},
		"longer":            {&hour, submitted(time.Minute), time.Minute},
		"shorter":           {&minute, submitted(time.Hour), time.Minute},
		"removed":           {nil, submitted(time.Minute), 0},
		"none submitted":    {&hour, &workload.Record{}, time.Hour},
		"nothing is known":  {&hour, nil, time.Hour},
		"nothing was asked": {&hour, submitted(0), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var got time.Duration
			if ttl := successTTL(appwrapper.Wrapper{SuccessTTL: c.written}, c.record); ttl != nil {
				got = *ttl
			}
			if got != c.want {
				t.Errorf("%s: it stays for %s, want %s", name, got, c.want)
			}
		})
	}
}

// TestAnAppWrapperGetsEvents: an AppWrapper of each version gets an event for each state and
// kind of reason, and none for a change of amounts or by the next process.
func TestAnAppWrapperGetsEvents(t *testing.T) {
	t.Parallel()
	bare := suspendedCluster()
	bare.Object["metadata"] = map[string]any{"name": "one"}
	unstructured.RemoveNestedField(bare.Object, "spec", "suspend")
	for name, o := range map[string]*unstructured.Unstructured{
		"v1beta1": {Object: map[string]any{"apiVersion": "workload.codeflare.dev/v1beta1", "kind": "AppWrapper", "spec": map[string]any{
			"resources": map[string]any{"GenericItems": []any{map[string]any{"replicas": int64(1), "generictemplate": bare.Object}}},
		}}},
		"v1beta2": {Object: map[string]any{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "spec": map[string]any{
			"components": []any{map[string]any{"template": bare.Object}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o.Object["metadata"] = map[string]any{
					"namespace": "team", "name": "one", "uid": "u", "labels": map[string]any{"muster.dev/queue-name": "default"},
					"finalizers": []any{finalizer}, "creationTimestamp": time.Now().UTC().Format(time.RFC3339),
				}
				record := &workload.Record{Workload: workload.Workload{Queue: "default"}, Phase: workload.Queued,
					Reason: &workload.Reason{Kind: workload.ReasonFit, Message: "2 pods do not fit"}}
				l := &lossy{object: o, record: record}
				wrappers := Key{Resource: resources()[0], Namespace: "team", Name: "one"}
				changed := func(d *Controller, phase workload.Phase, reason *workload.Reason) {
					l.mu.Lock()
					record.ID, record.Phase, record.Reason = d.ID("u"), phase, reason
					copied := *record
					l.mu.Unlock()
					d.Changed(&event.WorkloadChanged{Record: copied})
					time.Sleep(time.Second)
				}
				play(t, l, time.Second, func(d *Controller) {
					d.Enqueue(wrappers)
					time.Sleep(2 * settle)
					changed(d, workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "1 pod does not fit"})
					changed(d, workload.Queued, &workload.Reason{Kind: workload.ReasonNeverFits, Message: "no node offers so much"})
				})
				play(t, l, time.Second, func(d *Controller) { // the next process
					d.Enqueue(wrappers)
					time.Sleep(time.Second)
					changed(d, workload.Running, nil)
				})
				want := []string{
					"Normal MusterQueued: 2 pods do not fit", "Warning MusterQueued: no node offers so much",
					"Normal MusterAdmitted: workload " + string(record.ID) + " is admitted",
				}
				if !slices.Equal(l.events, want) {
					t.Errorf("events (want %q): %q", want, l.events)
				}
			})
		})
	}
}
