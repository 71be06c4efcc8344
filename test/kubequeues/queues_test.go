// Package kubequeues tests queues that a cluster has as objects of Kueue's kinds.
// Its cluster is its own: the objects belong to no namespace.
package kubequeues

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/testkit/clustertest"
	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/rights"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

const (
	patience  = time.Minute
	pollEvery = 100 * time.Millisecond
	// lookForKinds is how often intake looks for Kueue's definitions here, which the tests wait for.
	lookForKinds = 2 * time.Second
)

// What the tests share: each has a database and a namespace of its own.
var (
	shared    = clustertest.Shared{Name: "queues"}
	databases *pgtest.Server
)

func TestMain(m *testing.M) { stacktest.Main(m, &databases, &shared) }

// start is startFor with one namespace.
func start(t *testing.T, namespace string, through func(service, kubeconfig string) (string, error)) *stack.Stack {
	t.Helper()
	return startFor(t, through, namespace)
}

// startFor starts a stack with an unused queue for some namespaces, its services behind
// what is put through, if any. The tests of this package are not parallel:
// definitions belong to the whole cluster.
func startFor(t *testing.T, through func(service, kubeconfig string) (string, error), namespaces ...string) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{
		Cluster: shared.Use(t).Cluster, DatabaseURL: databases.Database(t), Dir: t.TempDir(), Logger: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel)),
		Queues: []queuemanager.Queue{{Name: "unused", Namespaces: namespaces}}, Through: through, LookForKinds: lookForKinds,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// kubectl runs a command and returns what it says and whether it succeeded.
func kubectl(t *testing.T, s *stack.Stack, input string, arguments ...string) (string, error) {
	t.Helper()
	output, err := s.Kubectl(t.Context(), input, arguments...)
	if errors.Is(err, stack.ErrNoKubectl) {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return output, err
}

func must(t *testing.T, s *stack.Stack, input string, arguments ...string) string {
	t.Helper()
	output, err := kubectl(t, s, input, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	stacktest.Until(t, pollEvery, patience, what, met)
}

// rayJob asks for the given GPUs, has the label of the queue, and runs for longer
// than the test.
func rayJob(gpus int) string {
	return fmt.Sprintf(`apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: pytorch-text-classifier
  labels: {kueue.x-k8s.io/queue-name: user-queue}
  annotations: {devcluster.muster.dev/job-outcome: succeeded, devcluster.muster.dev/job-duration: 1h}
spec:
  shutdownAfterJobFinishes: true
  entrypoint: python train.py
  rayClusterSpec:
    rayVersion: '2.54.0'
    headGroupSpec:
      rayStartParams: {}
      template: {spec: {containers: [{name: ray-head, image: 'rayproject/ray:2.54.0', ports: [{containerPort: 8265, name: dashboard}],
        resources: {limits: {cpu: 1, memory: 2Gi, nvidia.com/gpu: %[1]d}, requests: {cpu: 1, memory: 2Gi, nvidia.com/gpu: %[1]d}}}]}}
`, gpus)
}

// withDefinitions has Kueue's definitions in the cluster until the test ends, and an intake that
// watches their objects.
func withDefinitions(t *testing.T, s *stack.Stack) {
	t.Helper()
	definitions, err := os.ReadFile(filepath.Join("testdata", "kueue-crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StopService(stack.Intake); err != nil { // it looks for the definitions when it starts
		t.Fatal(err)
	}
	must(t, s, string(definitions), "apply", "--server-side", "-f", "-")
	t.Cleanup(func() {
		_, _ = s.Kubectl(context.Background(), string(definitions), "delete", "--wait=true", "--timeout=60s", "-f", "-")
	})
	// A definition stays as long as its objects, a flavor as long as its queues, and a queue as
	// long as its workloads. The last of these cleanups runs first.
	for _, kind := range []schema.GroupVersionResource{resourceFlavors, clusterQueues, localQueues, rayClusters, rayJobs} {
		t.Cleanup(func() { remove(t, s, kind) })
	}
	must(t, s, string(definitions), "wait", "--for=condition=Established", "-f", "-", "--timeout=30s")
	if err := s.StartService(t.Context(), stack.Intake); err != nil {
		t.Fatal(err)
	}
}

// remove deletes all objects of a kind, and waits until they are gone. Requests that fail are
// sent again.
func remove(t *testing.T, s *stack.Stack, kind schema.GroupVersionResource) {
	t.Helper()
	ctx, objects := context.Background(), s.Dynamic.Resource(kind)
	poll, deadline := time.NewTicker(pollEvery), time.After(patience)
	defer poll.Stop()
	for {
		left, err := objects.List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) { // so is the definition
			return
		}
		if err == nil && len(left.Items) == 0 {
			return
		}
		if err == nil {
			err = fmt.Errorf("%d are left", len(left.Items))
			for _, o := range left.Items {
				if o.GetDeletionTimestamp() != nil {
					continue
				}
				if refused := objects.Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{}); refused != nil && !apierrors.IsNotFound(refused) {
					err = refused
				}
			}
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("remove all %s: not within %s: %v", kind.Resource, patience, err)
		}
	}
}

// The guide's commands: kubectl apply of the queues, a RayJob with the label of
// the queue is Suspended, and runs when the node comes that it asks for. What is wrong with
// a queue is in its status; a queue that workloads are in stays as long as they.
func TestSeedsQueuesAreObjectsOfTheCluster(t *testing.T) {
	manifests, err := os.ReadFile("../../services/muster/examples/kueue-resources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := rights.NewRecorder(t)
	s := start(t, "default", asked.Through)
	withDefinitions(t, s)

	printed := must(t, s, string(manifests), "apply", "-n", "default", "-f", "-")
	for _, line := range []string{
		"resourceflavor.kueue.x-k8s.io/default-flavor created", "admissioncheck.kueue.x-k8s.io/rayjob-gpu created",
		"provisioningrequestconfig.kueue.x-k8s.io/rayjob-gpu-config created", "clusterqueue.kueue.x-k8s.io/cluster-queue created",
		"localqueue.kueue.x-k8s.io/user-queue created",
	} {
		if !strings.Contains(printed, line) {
			t.Errorf("kubectl says %q, which lacks %q", printed, line)
		}
	}
	must(t, s, "", "wait", "--for=condition=Active", "clusterqueue/cluster-queue", "--timeout=60s")
	must(t, s, "", "wait", "--for=condition=Active", "localqueue/user-queue", "-n", "default", "--timeout=60s")

	if err := s.AddNodes(t.Context(), "cpu", 1, "cpu=8", "memory=32Gi"); err != nil {
		t.Fatal(err)
	}
	if printed := must(t, s, rayJob(1), "create", "-n", "default", "-f", "-"); !strings.Contains(printed, "rayjob.ray.io/pytorch-text-classifier created") {
		t.Errorf("kubectl says %q", printed)
	}
	status := func() string {
		return field(t, s, rayJobs, "default", "pytorch-text-classifier", `{.status.jobDeploymentStatus} {.metadata.annotations.muster\.dev/state}`)
	}
	until(t, "the RayJob is Suspended and queued", func() bool { return status() == "Suspended queued" })
	until(t, "both queues count it as one that holds quota", func() bool {
		return field(t, s, clusterQueues, "", "cluster-queue", counts) == "0 1 0" && field(t, s, localQueues, "default", "user-queue", counts) == "0 1 0"
	})
	if pods := must(t, s, "", "get", "pods", "-n", "default"); !strings.Contains(pods, "No resources found") {
		t.Errorf("while it is suspended there are pods:\n%s", pods)
	}

	// A fault is in the status of the object, and the rest counts on.
	must(t, s, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: nowhere, namespace: default}\nspec: {clusterQueue: none}\n", "apply", "-n", "default", "-f", "-")
	must(t, s, "", "wait", "--for=condition=Active=False", "localqueue/nowhere", "-n", "default", "--timeout=60s")
	if why := must(t, s, "", "get", "localqueue", "nowhere", "-n", "default", "-o", "jsonpath={.status.conditions[0].message}"); !strings.Contains(why, `spec.clusterQueue: "none": there is no clusterQueue of this name`) {
		t.Errorf("it says %q", why)
	}

	until(t, "it asks for a node", func() bool {
		requests, err := s.Dynamic.Resource(provisioningRequests).Namespace("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(requests.Items, func(r unstructured.Unstructured) bool {
			return strings.HasPrefix(r.GetName(), "rayjob-pytorch-text-classifier-")
		})
	})
	if err := s.NodePool(t.Context(), "add", "gpu", "--max", "1", "--resource", "cpu=8,memory=32Gi", "--resource", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	until(t, "the RayJob runs", func() bool { return status() == "Running admitted" })
	if pods := must(t, s, "", "get", "pods", "-n", "default"); !strings.Contains(pods, "-head-") || !strings.Contains(pods, "Running") {
		t.Errorf("the pods are:\n%s", pods)
	}
	until(t, "the ClusterQueue counts what it uses", func() bool {
		return field(t, s, clusterQueues, "", "cluster-queue",
			"{.status.admittedWorkloads} {.status.flavorsUsage[0].resources[?(@.name=='nvidia.com/gpu')].total}") == "1 1"
	})

	// Deleted in the cluster, the queue stays while a workload is in it, and admits nothing.
	must(t, s, "", "delete", "localqueue", "nowhere", "-n", "default", "--timeout=60s")
	must(t, s, "", "delete", "localqueue", "user-queue", "-n", "default", "--wait=false")
	must(t, s, "", "delete", "clusterqueue", "cluster-queue", "--wait=false")
	for _, queue := range []string{"clusterqueue/cluster-queue", "localqueue/user-queue"} {
		must(t, s, "", "wait", "--for=jsonpath={.status.conditions[0].reason}=Terminating", queue, "-n", "default", "--timeout=60s")
		if why := must(t, s, "", "get", queue, "-n", "default", "-o", "jsonpath={.status.conditions[0].status} {.status.conditions[0].message}"); !strings.Contains(why, "False Cannot admit new workloads: is being deleted") {
			t.Errorf("%s in use says %q", queue, why)
		}
	}
	late := strings.NewReplacer("pytorch-text-classifier", "late", "nvidia.com/gpu: 1", "nvidia.com/gpu: 0").Replace(rayJob(1))
	must(t, s, late, "create", "-n", "default", "-f", "-")
	until(t, "a job that comes later is held", func() bool {
		return strings.Contains(field(t, s, rayJobs, "default", "late", "{.metadata.annotations}"), "is being deleted")
	})
	must(t, s, "", "delete", "rayjob", "late", "pytorch-text-classifier", "-n", "default")
	must(t, s, "", "wait", "--for=delete", "clusterqueue/cluster-queue", "--timeout=60s")
	must(t, s, "", "wait", "--for=delete", "localqueue/user-queue", "-n", "default", "--timeout=60s")
	until(t, "nothing of the cluster's queues is left but the default ones", func() bool {
		answer, err := s.Queries.Applied(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answer.Objects {
			if a.Kind == "LocalQueue" || a.Kind == "ClusterQueue" {
				return false
			}
		}
		return len(answer.Objects) == 3
	})
	if _, err := s.Queries.Configure(t.Context(), "", query.ConfigureRequest{}); err != nil {
		t.Error(err)
	}
	everyRightOnQueuesIsUsed(t, asked)
}

// everyRightOnQueuesIsUsed is what package e2e cannot see, whose cluster has no
// such queues.
func everyRightOnQueuesIsUsed(t *testing.T, asked *rights.Recorder) {
	t.Helper()
	grants, err := rights.Listed("any", "default")
	if err != nil {
		t.Fatal(err)
	}
	used, refused := asked.Seen()
	for _, r := range rights.Unused(grants, used, rights.Right.OfKueue) {
		t.Errorf("%s, but does not", r)
	}
	for _, what := range refused {
		t.Errorf("refused: %s", what)
	}
}
