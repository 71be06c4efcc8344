package e2e

import (
	"encoding/json"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/checker"
	"muster.dev/muster/test/stack"
)

// TestACheckerWithNothingButNATSDecides: the example grants two GPUs to a gang, and its label
// is on the pods. It rejects larger ones, of which no object exists at any time.
func TestACheckerWithNothingButNATSDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("own", 1, "cpu=32", "memory=64Gi", "nvidia.com/gpu=8")
	apply := []json.RawMessage{}
	for _, object := range []string{
		`{"kind":"AdmissionCheck","metadata":{"name":"budget"},"spec":{"controllerName":"example.com/budget"}}`,
		`{"kind":"ResourceFlavor","metadata":{"name":"default-flavor"}}`,
		`{"kind":"ClusterQueue","metadata":{"name":"cluster-queue"},"spec":{"namespaceSelector":{},"admissionChecks":["budget"],
			"resourceGroups":[{"coveredResources":["cpu","memory","nvidia.com/gpu"],"flavors":[{"name":"default-flavor","resources":[
				{"name":"cpu","nominalQuota":100},{"name":"memory","nominalQuota":"100Gi"},{"name":"nvidia.com/gpu","nominalQuota":100}]}]}]}}`,
		`{"kind":"LocalQueue","metadata":{"namespace":"` + w.Namespace + `","name":"user-queue"},"spec":{"clusterQueue":"cluster-queue"}}`,
	} {
		apply = append(apply, json.RawMessage(`{"apiVersion":"kueue.x-k8s.io/v1beta1",`+object[1:]))
	}
	if _, err := w.Queries.Configure(w.ctx, "", query.ConfigureRequest{Apply: apply}); err != nil {
		t.Fatal(err)
	}
	small := w.publish("user-queue", "", []byte(stack.RayCluster("small", 2, 1)))
	w.waits(small, workload.ReasonAdmissionCheck)
	w.nothingOf(small)
	large := w.publish("user-queue", "", []byte(stack.RayCluster("large", 3, 1)))
	w.waits(large, workload.ReasonAdmissionCheck)

	ended := make(chan error, 1)
	var mu sync.Mutex
	decided := map[string]int{}
	go func() {
		ended <- checker.Run(w.ctx, w.Bus.Conn(), "budget", func(asked checker.Wanted) checker.Answer {
			mu.Lock()
			defer mu.Unlock()
			decided[asked.Name]++
			gpus := int64(0)
			for _, set := range asked.PodSets {
				gpus += set.Count * set.Requests["nvidia.com/gpu"]
			}
			if gpus > 2 {
				return checker.Answer{Status: "Rejected", Message: "more than 2 GPUs"}
			}
			return checker.Answer{Status: "Ready", PodSetUpdates: []checker.Update{{PodSet: "workers", Labels: map[string]string{"cost-centre": "4711"}}}}
		})
	}()
	if why := w.reaches(large, workload.Failed).Reason; why.Kind != workload.ReasonCheckRejected || why.Message != `AdmissionCheck "budget" rejected it: more than 2 GPUs` {
		t.Errorf("the large one failed with %+v", why)
	}
	w.nothingOf(large)
	w.reaches(small, workload.Running)
	w.asPlanned(small)
	pods, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.ctx, metav1.ListOptions{LabelSelector: "cost-centre=4711"})
	if err != nil || len(pods.Items) != 2 {
		t.Errorf("%d pods have the label, %v; want the two workers", len(pods.Items), err)
	}
	select {
	case err := <-ended:
		t.Errorf("the checker ended: %v", err)
	default:
	}
	mu.Lock()
	defer mu.Unlock()
	if decided["small"] != 1 || decided["large"] != 1 {
		t.Errorf("the checker has decided %v, want once for each", decided)
	}
}
