package ray

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
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
	if err := decodeJSON(manifest, &cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func jobOf(t *testing.T, manifest json.RawMessage) rayv1.RayJob {
	t.Helper()
	var job rayv1.RayJob
	if err := decodeJSON(manifest, &job); err != nil {
		t.Fatal(err)
	}
	return job
}

func serviceOf(t *testing.T, manifest json.RawMessage) rayv1.RayService {
	t.Helper()
	var service rayv1.RayService
	if err := decodeJSON(manifest, &service); err != nil {
		t.Fatal(err)
	}
	return service
}

func decodeJSON(manifest json.RawMessage, into any) error {
	tree, err := parse(manifest)
	if err != nil {
		return err
	}
	return decode(tree, into)
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

// TestAutoscaling: the cluster is admitted at the stated size. At its maximum it is
// stamped so that it cannot grow beyond; what it asks for above its minimum is
// admitted by itself.
func TestAutoscaling(t *testing.T) {
	t.Parallel()
	const unbounded = -1
	const maximum, minimum = "", "  annotations: {muster.dev/autoscaling: minimum}\n"
	for _, c := range []struct {
		counts, annotation      string
		created, admitted, most int
		later                   int
	}{
		{"replicas: 2\n    maxReplicas: 4", maximum, 2, 4, 4, 2},
		{"replicas: 9\n    maxReplicas: 3\n    numOfHosts: 2", maximum, 6, 6, 3, 0},
		{"replicas: 0\n    maxReplicas: 10", maximum, 0, 10, 10, 10},
		{"replicas: 2\n    minReplicas: 1\n    maxReplicas: 4", minimum, 2, 1, 4, 0},
		{"minReplicas: 1", minimum, 1, 1, unbounded, 0}, // maxReplicas left out
		{"replicas: 3", minimum, 3, 0, unbounded, 0},
	} {
		t.Run(c.counts, func(t *testing.T) {
			manifest := edit(t, glue, "replicas: 2\n    maxReplicas: 4", c.counts, "spec:\n  headGroup", "spec:\n  enableInTreeAutoscaling: true\n  headGroup",
				"  name: glue\n", "  name: glue\n"+c.annotation)
			predicted, err := Shipped().Predict([]byte(manifest))
			if err != nil || predicted.Refusal != nil {
				t.Errorf("%q: %v, %v", c.counts, err, predicted.Refusal)
				return
			}
			created, _ := count(predicted.Created, "gpu")
			admitted, later := count(predicted.PodSets, "gpu")
			if created != c.created || admitted != c.admitted || later != c.later {
				t.Errorf("%q %q: %d created, %d admitted, %d of them later, want %d, %d, %d",
					c.counts, c.annotation, created, admitted, later, c.created, c.admitted, c.later)
			}
			most := unbounded
			if got := clusterOf(t, stamped(t, manifest)).Spec.WorkerGroupSpecs[0].MaxReplicas; got != nil {
				most = int(*got)
			}
			if most != c.most {
				t.Errorf("%q %q: stamped with maxReplicas %d, want %d", c.counts, c.annotation, most, c.most)
			}
		})
	}
	got := clusterOf(t, stamped(t, glue)).Spec.WorkerGroupSpecs[0].MaxReplicas
	if got == nil || *got != 4 {
		t.Errorf("without the autoscaler maxReplicas is stamped %v, want it as it was", got)
	}
}

func count(sets []workload.PodSet, name string) (pods, later int) {
	for _, set := range sets {
		if set.Name == name {
			return set.Count, set.Later
		}
	}
	return 0, 0
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
	input.Unplaced = true
	out, err = Stamp(object.Manifest, RayJob, input)
	if err != nil {
		t.Fatal(err)
	}
	if spec := jobOf(t, out).Spec.SubmitterPodTemplate.Spec; spec.NodeSelector[kube.HostnameLabel] != "" {
		t.Errorf("before its placement it is sent to %v", spec.NodeSelector)
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
	switch kind {
	case RayJob:
		spec = jobOf(t, manifest).Spec.RayClusterSpec
	case RayService:
		service := serviceOf(t, manifest)
		spec = &service.Spec.RayClusterSpec
		if strategy := service.Spec.UpgradeStrategy; strategy == nil || *strategy.Type != rayv1.RayServiceUpgradeNone {
			t.Errorf("%s: upgrade strategy %+v, want None", name, strategy)
		}
	default:
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

// TestStampAddsTheTermsOfFlavors, to the pods of the pod set alone.
func TestStampAddsTheTermsOfFlavors(t *testing.T) {
	t.Parallel()
	object, err := Read([]byte(glue))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := Stamp(object.Manifest, object.Kind, StampInput{
		Workload: "w1", Cluster: "c1", Attempt: 2, Epoch: 7, Queue: "default", Namespace: "research", Name: "glue-x",
		Terms: []workload.PodSetTerms{{
			PodSet: "gpu", NodeSelector: map[string]string{"gpu": "h100"}, Tolerations: []workload.Toleration{{Key: "dear", Operator: "Exists", Effect: "NoSchedule"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	plain, flavored := clusterOf(t, stamped(t, glue)), clusterOf(t, manifest)
	worker := &plain.Spec.WorkerGroupSpecs[0].Template.Spec
	if worker.NodeSelector == nil {
		worker.NodeSelector = map[string]string{}
	}
	worker.NodeSelector["gpu"] = "h100"
	worker.Tolerations = append(worker.Tolerations, corev1.Toleration{Key: "dear", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	if diff := cmp.Diff(plain, flavored); diff != "" {
		t.Errorf("stamped with a flavor (-want +got):\n%s", diff)
	}
}

// TestAManifestDoesNotNameItsHome: only Muster says in whose place an object is.
func TestAManifestDoesNotNameItsHome(t *testing.T) {
	t.Parallel()
	object, err := Read([]byte(edit(t, glue, "  name: glue\n", "  name: glue\n  annotations: {muster.dev/home: east/other}\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", "west/glue"} {
		input := stampOf("w1", "glue-x")
		input.Home = home
		manifest, err := Stamp(object.Manifest, object.Kind, input)
		if err != nil {
			t.Fatal(err)
		}
		if got := clusterOf(t, manifest).Annotations[kube.HomeKey]; got != home {
			t.Errorf("the home is %q, want %q", got, home)
		}
	}
}
