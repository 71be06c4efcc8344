package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// documentedPodSets is the example of docs/events.md.
func documentedPodSets(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(apiVersion: muster.dev/v1\nkind: PodSets.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example of pod sets")
	}
	return string(example[1])
}

// Plain pod sets wait whole, run whole on the nodes of the plan, and leave
// nothing.
func TestPlainPodSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=3")
	id := w.submit(documentedPodSets(t))
	w.waits(id, workload.ReasonFit)
	w.nothingOf(id)
	w.nodes("more", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=3")
	w.reaches(id, workload.Running)
	pods := w.pods(id)
	planned := map[string]int{}
	for _, p := range w.one(id).Placements {
		planned[p.Node] += p.Pods
	}
	for _, pod := range pods {
		planned[pod.Spec.NodeName]--
	}
	for node, difference := range planned {
		if difference != 0 {
			t.Errorf("node %s has %d pods fewer than planned", node, difference)
		}
	}
	if len(pods) != 4 {
		t.Errorf("there are %d pods, want 4", len(pods))
	}
	if _, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), "training-settings", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	w.cancel(id)
	w.released(id)
	// Pods that have done their work hold nothing, and may go a little later.
	w.untilPods("nothing is left", func() bool { return len(w.objects(id))+len(w.pods(id)) == 0 })
}

// The events of a batch are submissions of their own: bad ones are rejected
// beside good ones.
func TestABatchOfSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=16", "memory=64Gi")
	podSets, err := yaml.YAMLToJSON([]byte(strings.NewReplacer("nvidia.com/gpu: 1", "memory: 1Gi", "cpu: 4", "cpu: 1").Replace(documentedPodSets(t))))
	if err != nil {
		t.Fatal(err)
	}
	var batch []event.Envelope
	for i, manifest := range []string{stack.RayCluster("first", 1, 0), `{"kind": "Nothing"}`, string(podSets)} {
		batch = append(batch, event.Envelope{
			SpecVersion: event.SpecVersion, ID: fmt.Sprint(i), Source: w.Pool, Type: event.SubmitType, Data: json.RawMessage(manifest),
		})
	}
	encoded, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	w.publishRaw("default", encoded)
	for _, good := range []string{"0", "2"} {
		w.reaches(event.WorkloadID(w.Pool, good), workload.Running)
	}
	await(w, "the rejection", func(e *event.WorkloadRejected) bool { return e.Workload == event.WorkloadID(w.Pool, "1") })
}
