package app_test

import (
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// TestAnAppliedObjectOfALaterVersionStopsNoTerm: after the return to an earlier version of
// Muster an applied object may have fields that it cannot read. The queues in the database go
// on to count; only changes of the configuration wait until the object is gone or applied again.
func TestAnAppliedObjectOfALaterVersionStopsNoTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 4)
	w.apply(oneQueue)
	w.command(w.submit(gangOf("before", "user-queue", 1)), event.Present, 1)
	w.stop()
	w.sql(`ALTER TABLE applied DISABLE TRIGGER fenced;
		UPDATE applied SET manifest = replace(manifest::text, '"spec":{', '"spec":{"later":1,')::json WHERE kind = 'ResourceFlavor' OR kind = 'AdmissionCheck';
		ALTER TABLE applied ENABLE TRIGGER fenced`)
	w.start()
	if q := w.queue("user-queue"); q.ClusterQueue != "cluster-queue" || len(q.Quota) != 1 || q.Quota[0].Nominal != 1 {
		t.Errorf("the queue is %+v", q)
	}
	check := kueue.Key{Kind: "AdmissionCheck", Name: "rayjob-gpu"}
	other := manifests(t, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: other}\n")
	w.refused(query.ConfigureRequest{Apply: other}, check.String()+" was applied, and this version cannot read it", "delete it, or apply it again")
	w.apply(oneQueue)
	w.configure(query.ConfigureRequest{Apply: other})
	w.checkReplay()
}
