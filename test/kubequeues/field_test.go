package kubequeues

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/test/stack"
)

var (
	rayJobs              = ray.Resource("rayjobs")
	rayClusters          = ray.Resource("rayclusters")
	resourceFlavors      = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "resourceflavors"}
	clusterQueues        = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "clusterqueues"}
	localQueues          = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "localqueues"}
	provisioningRequests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}
)

// counts is the path of what a queue counts.
const counts = "{.status.pendingWorkloads} {.status.reservingWorkloads} {.status.admittedWorkloads}"

// field returns what kubectl get -o jsonpath prints of an object. It is for what is asked again
// and again: each kubectl is a process that reads what kinds the cluster has.
func field(t *testing.T, s *stack.Stack, kind schema.GroupVersionResource, namespace, name, path string) string {
	t.Helper()
	object, err := s.Dynamic.Resource(kind).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	parsed := jsonpath.New(name).AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := parsed.Execute(&text, object.Object); err != nil {
		t.Fatalf("read %s of %s %s: %v", path, kind.Resource, name, err)
	}
	return text.String()
}
