package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// sample reads the first document of one of KubeRay's samples.
func sample(t *testing.T, name string, into any) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ray-project/kuberay/ray-operator").Output()
	if err != nil {
		t.Fatalf("finding the module of KubeRay: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config/samples", name))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), into); err != nil {
		t.Fatalf("decoding the sample %s: %v", name, err)
	}
}

// testRay plays a RayCluster's life and the ends of RayJobs, on one of two
// instances that run side by side. The signal of service managers ends the other one.
func testRay(t *testing.T, first *instance) {
	second := start(t, "--name=beside", "--fleet=laptop")
	if first.APIServer == second.APIServer {
		t.Fatalf("both instances serve at %s", first.APIServer)
	}
	if first.Nodes != 4 || second.Nodes != 2 {
		t.Errorf("instances have %d and %d nodes, want 4 and 2", first.Nodes, second.Nodes)
	}

	t.Run("cluster", func(t *testing.T) { rayClusterLives(t, first) })
	tests := map[string]struct {
		reason  string
		mode    rayv1.JobSubmissionMode
		outcome string
		status  rayv1.JobStatus
		end     rayv1.JobDeploymentStatus
	}{
		"succeeds": {
			reason: "a job without annotations succeeds",
			mode:   rayv1.K8sJobMode, status: rayv1.JobStatusSucceeded, end: rayv1.JobDeploymentStatusComplete,
		},
		"fails": {
			reason: "the annotation lets a job fail, and KubeRay tells so",
			mode:   rayv1.K8sJobMode, outcome: "failed", status: rayv1.JobStatusFailed, end: rayv1.JobDeploymentStatusFailed,
		},
		"http": {
			reason: "the operator submits the job itself",
			mode:   rayv1.HTTPMode, status: rayv1.JobStatusSucceeded, end: rayv1.JobDeploymentStatusComplete,
		},
		"sidecar": {
			reason: "the container beside the head ends with the job, the head goes on",
			mode:   rayv1.SidecarMode, status: rayv1.JobStatusSucceeded, end: rayv1.JobDeploymentStatusComplete,
		},
	}
	for name, tc := range tests {
		t.Run("job "+name, func(t *testing.T) {
			var job rayv1.RayJob
			sample(t, "ray-job.sample.yaml", &job)
			job.Name, job.Namespace = "job-"+name, "default"
			job.Spec.SubmissionMode = tc.mode
			if tc.outcome != "" {
				job.Annotations = map[string]string{"devcluster.muster.dev/job-outcome": tc.outcome}
			}
			if err := first.client.Create(t.Context(), &job); err != nil {
				t.Fatal(err)
			}
			eventually(t, waitTimeout, func(ctx context.Context) string {
				if err := first.client.Get(ctx, client.ObjectKeyFromObject(&job), &job); err != nil {
					return err.Error()
				}
				if s := job.Status; s.JobStatus != tc.status || s.JobDeploymentStatus != tc.end {
					return fmt.Sprintf("%s: status is %s/%s (%s), want %s/%s",
						tc.reason, s.JobStatus, s.JobDeploymentStatus, s.Message, tc.status, tc.end)
				}
				return ""
			})
		})
	}
	t.Run("other instance has none of it", func(t *testing.T) {
		var pods corev1.PodList
		if err := second.client.List(t.Context(), &pods); err != nil {
			t.Fatal(err)
		}
		if len(pods.Items) > 0 {
			t.Errorf("there are %d pods, want none", len(pods.Items))
		}
	})
	second.endsBy(t, func() { signal(t, second.cmd.Process.Pid, syscall.SIGTERM) })
}

func rayClusterLives(t *testing.T, i *instance) {
	var cluster rayv1.RayCluster
	sample(t, "ray-cluster.sample.yaml", &cluster)
	cluster.Namespace = "default"
	if err := i.client.Create(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(&cluster), &cluster); err != nil {
			return err.Error()
		}
		//lint:ignore SA1019 "ready" is the word that people look for, deprecated or not
		if cluster.Status.State != rayv1.Ready {
			//lint:ignore SA1019 "ready" is the word that people look for, deprecated or not
			return fmt.Sprintf("state is %q, want ready", cluster.Status.State)
		}
		return ""
	})
	if err := i.client.Delete(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitTimeout, func(ctx context.Context) string {
		var pods corev1.PodList
		if err := i.client.List(ctx, &pods, client.MatchingLabels{"ray.io/cluster": cluster.Name}); err != nil {
			return err.Error()
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Sprintf("%d pods of the deleted RayCluster are left", n)
		}
		return ""
	})
}

// testServiceAccount sees that RBAC is on: a service account may do nothing that
// it was not given.
func testServiceAccount(t *testing.T, i *instance) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(i.do(t, "kubeconfig", "--service-account=default/default")), 0o600); err != nil {
		t.Fatal(err)
	}
	account := newClient(t, file)
	var nodes corev1.NodeList
	err := account.List(t.Context(), &nodes)
	if err == nil || !strings.Contains(err.Error(), `User "system:serviceaccount:default:default" cannot list`) {
		t.Errorf("listing nodes as the service account: %v, want it refused by name", err)
	}
	account = newClient(t, i.Kubeconfig)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	if err := account.Create(t.Context(), pod); err != nil {
		t.Errorf("creating a pod as the administrator: %v", err)
	}
	if err := account.Delete(t.Context(), pod); err != nil {
		t.Errorf("deleting the pod as the administrator: %v", err)
	}
	i.waitGone(t, pod)
}
