package ray

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
)

func stamped(t *testing.T, manifest string) json.RawMessage {
	t.Helper()
	object, err := Read([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	out, err := Stamp(object.Manifest, object.Kind, stampOf("w1", "glue-x"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func clusterOf(t *testing.T, manifest json.RawMessage) rayv1.RayCluster {
	t.Helper()
	var cluster rayv1.RayCluster
	if err := decode(manifest, &cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func jobOf(t *testing.T, manifest json.RawMessage) rayv1.RayJob {
	t.Helper()
	var job rayv1.RayJob
	if err := decode(manifest, &job); err != nil {
		t.Fatal(err)
	}
	return job
}

func podLabels(set string) map[string]string {
	return map[string]string{kube.WorkloadLabel: "w1", kube.ClusterLabel: "c1", kube.AttemptLabel: "2", kube.PodSetLabel: set}
}

// TestStampChanges lists everything that a stamp changes.
func TestStampChanges(t *testing.T) {
	t.Parallel()
	object, err := Read([]byte(glue))
	if err != nil {
		t.Fatal(err)
	}
	want := clusterOf(t, object.Manifest)
	want.Name, want.Namespace = "glue-x", "research"
	want.Labels = map[string]string{kube.WorkloadLabel: "w1", kube.ClusterLabel: "c1", kube.AttemptLabel: "2", kube.QueueLabel: "default"}
	want.Annotations = map[string]string{kube.EpochKey: "7"}
	gate := []corev1.PodSchedulingGate{{Name: kube.PlacementGate}}
	head, worker := &want.Spec.HeadGroupSpec.Template, &want.Spec.WorkerGroupSpecs[0].Template
	head.Labels, head.Spec.SchedulingGates = podLabels("headgroup"), gate
	worker.Labels, worker.Spec.SchedulingGates = podLabels("gpu"), gate
	if diff := cmp.Diff(want, clusterOf(t, stamped(t, glue))); diff != "" {
		t.Errorf("stamped (-want +got):\n%s", diff)
	}
}

// TestStampKeepsTheUsersLabels, but for those that hand the pods to Kueue, and
// drops what belongs to another life of the object.
func TestStampKeepsTheUsersLabels(t *testing.T) {
	t.Parallel()
	got := stamped(t, edit(t, glue,
		"apiVersion: ray.io/v1", "apiVersion: ray.io/v1alpha1\nstatus: {state: ready, foo: bar}",
		"name: glue\n", "name: glue\n  uid: u\n  resourceVersion: '7'\n  labels: {team: a, kueue.x-k8s.io/queue-name: q, muster.dev/attempt: '9'}\n",
		"    template:\n      spec:\n        nodeSelector", "    template:\n      metadata: {labels: {app: b, kueue.x-k8s.io/queue-name: q}}\n      spec:\n        nodeSelector"))
	cluster := clusterOf(t, got)
	if cluster.APIVersion != GroupVersion || cluster.UID != "" || cluster.ResourceVersion != "" || strings.Contains(string(got), `"status"`) {
		t.Errorf("apiVersion %s, uid %q, resourceVersion %q, in %s", cluster.APIVersion, cluster.UID, cluster.ResourceVersion, got)
	}
	want := map[string]string{"team": "a", kube.WorkloadLabel: "w1", kube.ClusterLabel: "c1", kube.AttemptLabel: "2", kube.QueueLabel: "default"}
	if diff := cmp.Diff(want, cluster.Labels); diff != "" {
		t.Errorf("labels of the object (-want +got):\n%s", diff)
	}
	want = podLabels("gpu")
	want["app"] = "b"
	if diff := cmp.Diff(want, cluster.Spec.WorkerGroupSpecs[0].Template.Labels); diff != "" {
		t.Errorf("labels of the workers (-want +got):\n%s", diff)
	}
}

// TestStampBoundsTheAutoscaler to what was admitted, and only with it.
func TestStampBoundsTheAutoscaler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts      string
		autoscaling bool
		want        int32
	}{
		{"replicas: 2\n    maxReplicas: 4", false, 4},
		{"replicas: 2\n    maxReplicas: 4", true, 2},
		{"minReplicas: 1", true, 1},
		{"replicas: 0\n    maxReplicas: 10", true, 0},
		{"replicas: 9\n    maxReplicas: 3\n    numOfHosts: 2", true, 3},
	} {
		manifest := edit(t, glue, "replicas: 2\n    maxReplicas: 4", c.counts)
		if c.autoscaling {
			manifest = edit(t, manifest, "spec:\n  headGroup", "spec:\n  enableInTreeAutoscaling: true\n  headGroup")
		}
		got := clusterOf(t, stamped(t, manifest)).Spec.WorkerGroupSpecs[0].MaxReplicas
		if got == nil || *got != c.want {
			t.Errorf("%q, autoscaling %v: maxReplicas %v, want %d", c.counts, c.autoscaling, got, c.want)
		}
	}
}

// TestStampSubmitter: without a template of the user's it is KubeRay's, pinned.
func TestStampSubmitter(t *testing.T) {
	t.Parallel()
	job := jobOf(t, stamped(t, train))
	pod := job.Spec.SubmitterPodTemplate
	if pod == nil {
		t.Fatal("no submitterPodTemplate")
	}
	want := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{kube.HostnameLabel: "n1"},
		Containers: []corev1.Container{{
			Name: "ray-job-submitter", Image: "rayproject/ray:2.52.0",
			Resources: corev1.ResourceRequirements{Limits: amounts("1", "1Gi"), Requests: amounts("500m", "200Mi")},
		}},
	}}
	want.Labels = podLabels("submitter")
	if diff := cmp.Diff(want, *pod); diff != "" {
		t.Errorf("submitter (-want +got):\n%s", diff)
	}
	if gates := job.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.SchedulingGates; len(gates) != 1 {
		t.Errorf("gates of the head: %v, want one", gates)
	}
}

func TestStampSubmitterOfTheUser(t *testing.T) {
	t.Parallel()
	manifest := edit(t, train, "spec:\n  entry",
		"spec:\n  submitterPodTemplate:\n    spec: {restartPolicy: Never, nodeSelector: {zone: b}, containers: [{name: mine, image: i, command: [run]}]}\n  entry")
	object, err := Read([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	input := stampOf("w1", "train")
	input.Placements[0].Hostname = "host-1"
	out, err := Stamp(object.Manifest, RayJob, input)
	if err != nil {
		t.Fatal(err)
	}
	spec := jobOf(t, out).Spec.SubmitterPodTemplate.Spec
	if diff := cmp.Diff(map[string]string{"zone": "b", kube.HostnameLabel: "host-1"}, spec.NodeSelector); diff != "" {
		t.Errorf("nodeSelector (-want +got):\n%s", diff)
	}
	if spec.Containers[0].Name != "mine" || spec.Containers[0].Command[0] != "run" || len(spec.SchedulingGates) != 0 {
		t.Errorf("submitter: %+v, want the user's without a gate", spec)
	}
	input.Placements = nil
	if _, err := Stamp(object.Manifest, RayJob, input); err == nil || !strings.Contains(err.Error(), `no placement for pod set "submitter"`) {
		t.Errorf("without a placement: error %v", err)
	}
}

// TestStampOtherModes: no submitter pod, no template.
func TestStampOtherModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"HTTPMode", "SidecarMode", "InteractiveMode"} {
		job := jobOf(t, stamped(t, edit(t, train, "spec:\n  entry", "spec:\n  submissionMode: "+mode+"\n  entry")))
		if job.Spec.SubmitterPodTemplate != nil {
			t.Errorf("%s: got a submitterPodTemplate", mode)
		}
	}
}

// TestStampSamples: every template of every sample is labelled and gated, and
// the same input gives the same bytes.
func TestStampSamples(t *testing.T) {
	t.Parallel()
	for name, text := range samples(t) {
		object, err := Read([]byte(text))
		if err != nil {
			continue // TestSamples says which
		}
		id := event.WorkloadID("samples", name)
		first, err := Stamp(object.Manifest, object.Kind, stampOf(id, Name(object, id)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		second, err := Stamp(object.Manifest, object.Kind, stampOf(id, Name(object, id)))
		if err != nil || string(first) != string(second) {
			t.Errorf("%s: stamped twice differs, error %v", name, err)
		}
		checkTemplates(t, name, object.Kind, first)
	}
}

func checkTemplates(t *testing.T, name, kind string, manifest json.RawMessage) {
	t.Helper()
	var spec *rayv1.RayClusterSpec
	if kind == RayJob {
		spec = jobOf(t, manifest).Spec.RayClusterSpec
	} else {
		cluster := clusterOf(t, manifest)
		spec = &cluster.Spec
	}
	templates := map[string]corev1.PodTemplateSpec{HeadGroup: spec.HeadGroupSpec.Template}
	for _, g := range spec.WorkerGroupSpecs {
		templates[g.GroupName] = g.Template
	}
	for set, template := range templates {
		if template.Labels[kube.PodSetLabel] != set || template.Labels[kube.AttemptLabel] != "2" || template.Labels[kube.WorkloadLabel] == "" {
			t.Errorf("%s: labels of %s: %v", name, set, template.Labels)
		}
		if gates := template.Spec.SchedulingGates; len(gates) != 1 || gates[0].Name != kube.PlacementGate {
			t.Errorf("%s: gates of %s: %v", name, set, gates)
		}
	}
}
