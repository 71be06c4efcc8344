package kubecontroller

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// seen is an API server with one object, and a bus that takes every message.
type seen struct {
	Cluster
	Messages
	object    *unstructured.Unstructured
	submitted *event.WorkloadSubmitted
}

func (s *seen) Object(Key) *unstructured.Unstructured { return s.object.DeepCopy() }

func (*seen) SetFinalizer(context.Context, *unstructured.Unstructured, bool) error { return nil }

func (*seen) ReplaceStatus(context.Context, *unstructured.Unstructured, map[string]any) error {
	return nil
}

func (*seen) WriteStatus(context.Context, *unstructured.Unstructured, map[string]any) error {
	return nil
}

func (*seen) Annotate(context.Context, *unstructured.Unstructured, map[string]string) error {
	return nil
}

func (*seen) RecordEvent(context.Context, *unstructured.Unstructured, bool, string, string) error {
	return nil
}

func (*seen) Delete(context.Context, *unstructured.Unstructured) error { return nil }

func (*seen) Allowed(context.Context, bundle.Submitter, bundle.Identity) (string, error) {
	return "", nil
}

func (*seen) Stamps(context.Context, string) (bool, error) { return true, nil }

func (s *seen) Submit(_ context.Context, _, _ string, submitted *event.WorkloadSubmitted) (uint64, error) {
	s.submitted = submitted
	return 1, nil
}

func (*seen) Cancel(context.Context, string, string, *event.WorkloadCancel) (uint64, error) {
	return 1, nil
}

func (*seen) Records(context.Context, []workload.ID) ([]workload.Record, error) { return nil, nil }

// FuzzReconcile checks that every object is reconciled without an error, and that its
// submission is a gang of its own namespace, with the submitter that the API server has
// stamped on it.
func FuzzReconcile(f *testing.F) {
	object := suspendedCluster()
	for _, change := range []func(map[string]any){
		func(map[string]any) {},
		func(o map[string]any) { o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z" },
		func(o map[string]any) {
			o["metadata"].(map[string]any)["annotations"] = map[string]any{
				"muster.dev/user": "alice", groupsKey: `["a"]`, "muster.dev/held": "u", "muster.dev/identity": `{"user":"root"}`, kube.StateKey: "",
			}
		},
		func(o map[string]any) { o["spec"] = []any{1, "x", nil} },
	} {
		copied := object.DeepCopy()
		change(copied.Object)
		encoded, err := json.Marshal(copied.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Add([]byte(`{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"namespace":"team","name":"a","uid":"u","finalizers":["muster.dev/workload"],"annotations":{"muster.dev/user":"alice"},"labels":{"muster.dev/queue-name":"q"}},"spec":{"components":[{"template":{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i","resources":{"requests":{"memory":"1e99999999"}}}]}}}}}]},"status":{"phase":1,"rejected":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(data) != nil {
			return // no API server keeps it
		}
		object.SetNamespace("team")
		object.SetUID("u")
		for _, resource := range resources() {
			s := &seen{object: object}
			d := New(Options{Cluster: "c", Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: zap.NewNop()}, s)
			d.SetCluster(s)
			if _, err := d.reconcile(t.Context(), Key{Resource: resource, Namespace: "team", Name: "one"}); err != nil {
				t.Fatalf("%s: %v", resource.Resource, err)
			}
			if s.submitted == nil {
				continue
			}
			w := s.submitted.Workload
			by := workload.ByKubernetes + "/c"
			if user := object.GetAnnotations()[userKey]; user != "" {
				by += "/" + user
			}
			if w.Namespace != "team" || w.ID != d.ID("u") || len(w.PodSets) == 0 || w.Submitter != by {
				t.Fatalf("%s: submitted is %+v, by %q; want by %q", resource.Resource, w, w.Submitter, by)
			}
		}
	})
}
