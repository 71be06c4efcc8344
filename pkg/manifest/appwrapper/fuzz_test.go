package appwrapper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
)

// FuzzRead: whatever an AppWrapper says, it is refused by name or it is a gang
// whose pod sets can be told apart, and whose objects survive being stored and can
// be created.
func FuzzRead(f *testing.F) {
	f.Add([]byte(v1beta1(item(fmt.Sprintf(rayCluster, "a"), "\n      completionstatus: Ready"), item(fmt.Sprintf(rayCluster, "b"), ""))))
	f.Add([]byte(v1beta1(item(" {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
		"\n      custompodresources: [{replicas: 2, requests: {cpu: 1, nvidia.com/gpu: 1}, limits: {memory: 1Gi}}]")) + "\n  schedulingSpec: {minAvailable: 2, requeuing: {timeInSeconds: 9}}\n"))
	f.Add([]byte("apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: a, labels: {kueue.x-k8s.io/queue-name: q}}\nspec:\n  components:\n" +
		"  - podSets: [{replicas: 2, path: template.spec.template}]\n" +
		"    template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}}\n"))
	for _, hostile := range []string{"1e99999999", "'1e-99999999'", "-1", "9e18", "[1]"} {
		pods := "{restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {memory: " + hostile + "}}}, {name: d, image: i, resources: {requests: {memory: 1}}}]}"
		f.Add([]byte(v1beta1(item(" {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: "+pods+"}}}", ""))))
		f.Add([]byte(v1beta1(item(" {apiVersion: v1, kind: ConfigMap, metadata: {name: ../../x}}", "\n      custompodresources: [{replicas: 1, requests: {memory: "+hostile+"}}]"))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := ray.Tree(data)
		if err != nil {
			return // package ray's own
		}
		begun := time.Now()
		read, err := appwrapper.Read(ray.Shipped(), tree)
		if took := time.Since(begun); took > 5*time.Second {
			t.Fatalf("took %s", took)
		}
		if err != nil {
			if !errors.Is(err, appwrapper.ErrInvalid) && !errors.Is(err, ray.ErrInvalid) || len(err.Error()) > 4000 {
				t.Fatalf("error of %d bytes: %v", len(err.Error()), err)
			}
			return
		}
		checkWrapper(t, read)
	})
}

func checkWrapper(t *testing.T, read appwrapper.Wrapper) {
	t.Helper()
	names := map[string]bool{}
	for _, set := range read.PodSets {
		if set.Count < 1 || names[set.Name] {
			t.Fatalf("pod set %+v", set)
		}
		names[set.Name] = true
	}
	if len(names) == 0 {
		t.Fatal("an AppWrapper without pods is taken")
	}
	stored, err := read.Bundle.Encode()
	if err != nil {
		t.Fatalf("what is accepted cannot be stored: %v", err)
	}
	again, err := bundle.Decode(stored)
	if err != nil {
		t.Fatalf("what was stored is not read: %v", err)
	}
	for i, item := range again.Items {
		if diff := cmp.Diff(string(read.Bundle.Items[i].Object), string(item.Object)); diff != "" {
			t.Fatalf("stored, object %d is another:\n%s", i, diff)
		}
		if _, err := again.Stamp(item, ray.StampInput{Workload: "w", Cluster: "c", Attempt: 1, Namespace: "team"}); err != nil {
			t.Fatalf("object %d is accepted and cannot be created: %v\n%s", i, err, item.Object)
		}
	}
}
