package kubecontroller

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestTheOwnerIsNoContent: an AppWrapper has the same digest with and without its owner,
// which older versions do not write; its content, user and queue change the digest.
func TestTheOwnerIsNoContent(t *testing.T) {
	t.Parallel()
	digest := func(queue, object string, owner *bundle.Owner, user *bundle.Submitter) string {
		t.Helper()
		found, err := digestOf(queue, bundle.Bundle{Submitter: user, Owner: owner, Items: []bundle.Item{{Object: json.RawMessage(object)}}})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const object = `{"kind":"ConfigMap"}`
	owner, user := &bundle.Owner{Kind: "AppWrapper", Name: "a", UID: "u"}, &bundle.Submitter{User: "alice"}
	unnamed := digest("q", object, nil, user)
	if named := digest("q", object, owner, user); named != unnamed {
		t.Errorf("with its owner the digest is %s, without %s", named, unnamed)
	}
	// As versions without owners wrote it.
	if want := "4238b4dafdd0a4c7192400bbd16bd959"; unnamed != want {
		t.Errorf("the digest is %s, of older versions %s", unnamed, want)
	}
	for name, other := range map[string]string{
		"another object": digest("q", `{"kind":"Secret"}`, owner, user),
		"another queue":  digest("r", object, owner, user),
		"another user":   digest("q", object, owner, &bundle.Submitter{User: "bob"}),
	} {
		t.Run(name, func(t *testing.T) {
			if other == unnamed {
				t.Errorf("%s has the same digest", name)
			}
		})
	}
}

// answers is a queue-manager that knows one workload, or none.
type answers struct {
	Messages
	record *workload.Record
}

func (a answers) Records(context.Context, []workload.ID) ([]workload.Record, error) {
	if a.record == nil {
		return nil, nil
	}
	return []workload.Record{*a.record}, nil
}

// TestARejectionOfASecondSubmissionIsNone: the refusal of a second submission does not
// reject the workload, or the controller would release its object while it runs.
func TestARejectionOfASecondSubmissionIsNone(t *testing.T) {
	t.Parallel()
	const id = workload.ID("w")
	running := &workload.Record{Workload: workload.Workload{ID: id}, Phase: workload.Running}
	rejection := &event.WorkloadRejected{Workload: id, Reason: workload.Reason{Kind: workload.ReasonDuplicate}}
	for name, c := range map[string]struct {
		heard, stored *workload.Record
		lives         bool
	}{
		"with an event before":  {running, running, true},
		"known to the ledger":   {nil, running, true},
		"rejected and not held": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Options{Logger: zap.NewNop()}, answers{record: c.stored})
			d.tracked[id] = &tracked{record: c.heard}
			d.Rejected(rejection)
			k := *d.tracked[id]
			if err := d.lookUp(t.Context(), id, &k); err != nil {
				t.Fatal(err)
			}
			if lives := k.record != nil && k.rejected == nil; lives != c.lives || !lives && k.rejected == nil {
				t.Errorf("%s: record %v, rejection %v", name, k.record, k.rejected)
			}
			if kept := d.tracked[id]; (kept.rejected == nil) != c.lives {
				t.Errorf("%s: it is remembered as rejected for %v", name, kept.rejected)
			}
		})
	}
}
