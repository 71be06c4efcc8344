package demo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

func pod(name, set, node string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kube.PodSetLabel: set}},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
}

func TestMisplaced(t *testing.T) {
	t.Parallel()
	plan := []workload.Placement{{PodSet: "head", Node: "a", Pods: 1}, {PodSet: "small", Node: "b", Pods: 2}}
	head := pod("h", "head", "a", corev1.PodRunning)
	one, two := pod("w1", "small", "b", corev1.PodRunning), pod("w2", "small", "b", corev1.PodRunning)
	tests := map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"as planned":  {[]corev1.Pod{two, head, one}, ""},
		"one missing": {[]corev1.Pod{head, one}, `1 pods of "small" are missing on node "b"`},
		"elsewhere": {
			[]corev1.Pod{head, one, pod("w2", "small", "a", corev1.PodRunning)},
			`1 pods of "small" are missing on node "b"; pod w2 of "small" is on node "a", where the plan has no place for it`,
		},
		"too many":        {[]corev1.Pod{head, one, two, pod("w3", "small", "b", corev1.PodRunning)}, `pod w3 of "small" is on node "b", where the plan has no place for it`},
		"not running yet": {[]corev1.Pod{pod("h", "head", "a", corev1.PodPending), one, two}, "pod h is Pending"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := misplaced(test.pods, plan); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
