package e2e

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// TestACheckpointOnTheObjectCounts: an annotation of a live object is stored with the workload.
func TestACheckpointOnTheObjectCounts(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=4")
	id := w.submit(stack.RayCluster("saves", 1, 1))
	w.reaches(id, workload.Running)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		kube.LastCheckpointKey: time.Now().Add(time.Hour).Format(time.RFC3339), // what is to come counts as now
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.rayClusters().Patch(t.Context(), "saves", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the checkpoint is stored", func() bool {
		r := w.one(id)
		return r.Saved() != nil
	})
	record := w.one(id)
	saved := record.Saved()
	if saved.Attempt != 1 || saved.Count != 1 || saved.At.After(time.Now()) {
		t.Errorf("stored is %+v", saved)
	}
}

// pageOn finds the rights and the program of the page by which a job reports its checkpoints.
var pageOn = regexp.MustCompile("(?s)\\*\\*From within the job\\.\\*\\*.*?```yaml\n(.*?)```.*?```python\n(.*?)```")

// TestAJobReportsItsCheckpoints: with the rights and the program of the page, what runs in a pod
// reports by the annotation of its pod, with the pod's own service account.
func TestAJobReportsItsCheckpoints(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	page, err := os.ReadFile("../../docs/queues.md")
	if err != nil {
		t.Fatal(err)
	}
	found := pageOn.FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no program that reports checkpoints")
	}
	w := ruled(t, workload.Rules{Pods: workload.PodPolicy{ServiceAccounts: []string{"trainer"}}})
	w.apply(found[1])
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=4")
	id := w.submit(strings.ReplaceAll(stack.RayCluster("saves", 1, 1), `{"spec":{"containers"`, `{"spec":{"serviceAccountName":"trainer","containers"`))
	w.reaches(id, workload.Running)
	pods := w.pods(id)
	if len(pods) != 2 || pods[1].Spec.ServiceAccountName != "trainer" {
		t.Fatalf("the pods are %+v, want two with the service account", pods)
	}
	started := w.one(id)
	before := started.Times.Admitted
	for i, pod := range pods { // each time another one
		apart := workload.SavedApart
		if i == 0 { // times of reports are in whole seconds
			apart = 2 * time.Second
		}
		w.until("the next checkpoint is one of its own", func() bool { return time.Since(before) > apart })
		w.runIn(pod, python, string(found[2])+"\nreport_checkpoint()\n")
		var saved *workload.Saved
		w.until("the checkpoint is stored", func() bool {
			record := w.one(id)
			saved = record.Saved()
			return saved != nil && saved.Count == i+1
		})
		if !saved.At.After(before) || saved.At.After(time.Now()) {
			t.Errorf("stored is %+v, and the one before is at %s", saved, before)
		}
		before = saved.At
	}
}

// apply creates the objects of a document in the namespace of the stack.
func (w *world) apply(document []byte) {
	w.t.Helper()
	for part := range strings.SplitSeq(string(document), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
			w.t.Fatal(err)
		}
		object.SetNamespace(w.Namespace)
		if subjects, found, _ := unstructured.NestedSlice(object.Object, "subjects"); found { // absent reads as empty
			subjects[0].(map[string]any)["namespace"] = w.Namespace
			object.Object["subjects"] = subjects
		}
		gvk := object.GroupVersionKind()
		resource := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"}
		if _, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).Create(w.ctx, &object, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// runIn runs a program of Python with what a container of the pod has: the files of its service
// account, and the variables that name the API server and the pod. No kubelet runs the pods.
func (w *world) runIn(pod corev1.Pod, python, program string) {
	w.t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", shared.Use(w.t).Kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := w.Kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(w.ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	account := w.t.TempDir() + "/"
	for name, content := range map[string]string{"token": token.Status.Token, "namespace": pod.Namespace, "ca.crt": string(admin.CAData)} {
		if err := os.WriteFile(account+name, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	const mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"
	if !strings.Contains(program, mounted) {
		w.t.Fatalf("the program reads no %s:\n%s", mounted, program)
	}
	server, err := url.Parse(admin.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	command := exec.CommandContext(w.ctx, python, "-c", strings.Replace(program, mounted, account, 1))
	command.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+server.Hostname(), "KUBERNETES_SERVICE_PORT="+server.Port(), "HOSTNAME="+pod.Name, "no_proxy=*")
	if output, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("%v:\n%s", err, output)
	}
}
