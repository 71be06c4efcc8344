package kubequeues

import (
	"context"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/test/stack"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// A cluster that serves no ProvisioningRequests: the AdmissionCheck is not active, the queue names
// it, and a RayJob that lacks nodes waits with that reason. Once they are served it asks. What needs no
// new node is admitted meanwhile.
func TestAClusterThatServesNoProvisioningRequests(t *testing.T) {
	manifests, err := os.ReadFile("../../services/muster/examples/kueue-resources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, "default", nil)
	withDefinitions(t, s)
	serve := unserveRequests(t, s)

	must(t, s, string(manifests), "apply", "-n", "default", "-f", "-")
	must(t, s, "", "wait", "--for=jsonpath={.status.conditions[0].reason}=NotServed", "admissioncheck/rayjob-gpu", "--timeout=60s")
	if is := must(t, s, "", "get", "admissioncheck", "rayjob-gpu", "-o", "jsonpath={.status.conditions[0].status} {.status.conditions[0].message}"); !strings.HasPrefix(is, "False the API server of this cluster serves no ProvisioningRequests") {
		t.Errorf("the check is active: %s", is)
	}
	must(t, s, "", "wait", "--for=condition=Active", "clusterqueue/cluster-queue", "--timeout=60s")
	until(t, "the queue names its check", func() bool {
		return strings.Contains(field(t, s, clusterQueues, "", "cluster-queue", "{.status.conditions[0].message}"), `AdmissionCheck "rayjob-gpu" is not active: the API server of this cluster serves no ProvisioningRequests`)
	})

	if err := s.AddNodes(t.Context(), "cpu", 1, "cpu=8", "memory=32Gi"); err != nil {
		t.Fatal(err)
	}
	must(t, s, rayJob(1), "create", "-n", "default", "-f", "-")
	until(t, "the RayJob waits with the reason", func() bool {
		return strings.Contains(field(t, s, rayJobs, "default", "pytorch-text-classifier", `{.metadata.annotations.muster\.dev/reason}`), "ProvisioningRequest")
	})
	small := strings.NewReplacer("pytorch-text-classifier", "small", "nvidia.com/gpu: 1", "nvidia.com/gpu: 0").Replace(rayJob(1))
	must(t, s, small, "create", "-n", "default", "-f", "-")
	until(t, "a RayJob that needs no new node runs", func() bool {
		return field(t, s, rayJobs, "default", "small", "{.status.jobDeploymentStatus}") == "Running"
	})

	serve()
	must(t, s, "", "wait", "--for=condition=Active", "admissioncheck/rayjob-gpu", "--timeout=60s")
	until(t, "it asks for a node", func() bool {
		requests, err := s.Dynamic.Resource(provisioningRequests).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(requests.Items) == 1 && strings.HasPrefix(requests.Items[0].GetName(), "rayjob-pytorch-text-classifier-")
	})
	must(t, s, "", "delete", "rayjob", "pytorch-text-classifier", "small", "-n", "default")
	until(t, "no request is left", func() bool {
		requests, err := s.Dynamic.Resource(provisioningRequests).Namespace("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(requests.Items) == 0
	})
}

// unserveRequests has the cluster serve no ProvisioningRequests, as a dispatcher finds it that starts
// there, until the returned function is called or the test ends.
func unserveRequests(t *testing.T, s *stack.Stack) (serve func()) {
	t.Helper()
	const name = "provisioningrequests.autoscaling.x-k8s.io"
	definition, err := s.Dynamic.Resource(crds).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StopService(stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	must(t, s, "", "delete", "customresourcedefinition", name, "--timeout=60s")
	served := false
	serve = func() {
		if served {
			return
		}
		served = true
		for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
			delete(definition.Object["metadata"].(map[string]any), field)
		}
		delete(definition.Object, "status")
		encoded, err := definition.MarshalJSON()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := s.Kubectl(context.Background(), string(encoded), "create", "-f", "-"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(serve)
	if err := s.StartService(t.Context(), stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	return serve
}
