package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwokapi "sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// TestPodStages: a pod in each state matches the stage that it is to go through. Where two
// match, KWOK draws one, so at most one may.
func TestPodStages(t *testing.T) {
	stages, err := loadStages()
	if err != nil {
		t.Fatal(err)
	}
	life, err := lifecycle.NewLifecycle(stages[kwokapi.StageResourceRef{APIGroup: "v1", Kind: "Pod"}])
	if err != nil {
		t.Fatal(err)
	}
	running := func(edit func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
		edit(pod)
		return pod
	}
	ofJob := func(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job"}} }
	submits := func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "submitter", Env: []corev1.EnvVar{{Name: "RAY_JOB_SUBMISSION_ID", Value: "x"}},
		})
	}
	notReady := func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
	tests := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"bound": {running(func(pod *corev1.Pod) {
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		}), "pod-ready"},
		"running":   {running(func(*corev1.Pod) {}), ""},
		"of a job":  {running(ofJob), "pod-complete"},
		"submitter": {running(func(pod *corev1.Pod) { ofJob(pod); submits(pod) }), ""},
		"sidecar":   {running(submits), ""},
		"not ready": {running(notReady), "pod-recover"},
		"not ready after its sidecar ended": {running(func(pod *corev1.Pod) {
			notReady(pod)
			pod.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{}
		}), ""},
		"deleted": {running(func(pod *corev1.Pod) {
			ofJob(pod)
			pod.DeletionTimestamp = &metav1.Time{}
			*pod.DeletionTimestamp = metav1.Now()
		}), "pod-delete"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			event := &lifecycle.Event{Labels: tc.pod.Labels, Annotations: tc.pod.Annotations, Data: tc.pod}
			matching, err := life.ListAllPossible(t.Context(), event)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, stage := range matching {
				names = append(names, stage.Name())
			}
			if len(names) > 1 || (len(names) == 1 && names[0] != tc.want) || (len(names) == 0 && tc.want != "") {
				t.Errorf("stages are %q, want %q", names, tc.want)
			}
		})
	}
}
