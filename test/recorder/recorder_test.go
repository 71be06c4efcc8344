package recorder

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func newRecorder() *Recorder {
	return &Recorder{nodes: map[string]amounts{}, pods: map[string]*pod{}, used: map[string]amounts{}, gangs: map[string]*gang{}, spent: map[string]map[corev1.ResourceName]float64{}}
}

func nodeObject(name, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("10")},
	}}
}

func podObject(name, gang, node, pinned, cpu string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Status: corev1.PodStatus{Phase: phase}}
	if gang != "" {
		p.Labels = map[string]string{workloadLabel: gang, attemptLabel: "1", podSetLabel: "workers"}
	}
	p.Spec = corev1.PodSpec{NodeName: node, NodeSelector: map[string]string{hostname: pinned}, Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}},
	}}
	return p
}

// The recorder sees what it is there to see.
func TestTheRecorderBites(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	r.node(watch.Added, nodeObject("n", "2"))
	r.pod(watch.Added, podObject("a", "g", "n", "n", "1", corev1.PodRunning))
	r.pod(watch.Added, podObject("done", "", "n", "", "1", corev1.PodSucceeded))
	r.pod(watch.Added, podObject("b", "", "n", "", "1", corev1.PodRunning))
	if len(r.seen.Violations) != 0 {
		t.Fatalf("a full node is no violation: %v", r.seen.Violations)
	}
	r.pod(watch.Added, podObject("c", "", "n", "", "500m", corev1.PodRunning))
	if len(r.seen.Violations) != 1 || !strings.Contains(r.seen.Violations[0], "over-committed") {
		t.Errorf("over-commit: %v", r.seen.Violations)
	}
	r.pod(watch.Deleted, podObject("c", "", "n", "", "500m", corev1.PodRunning))
	r.pod(watch.Deleted, podObject("b", "", "n", "", "1", corev1.PodRunning))
	r.pod(watch.Added, podObject("off", "g", "n", "other", "500m", corev1.PodRunning))
	if len(r.seen.Violations) != 2 || !strings.Contains(r.seen.Violations[1], "was sent to") {
		t.Errorf("off its place: %v", r.seen.Violations)
	}
	homeless := podObject("h", "g2", "", "n", "1", corev1.PodPending)
	homeless.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	r.pod(watch.Added, homeless)
	if got := r.Report().Starting; got.Count != 0 {
		t.Errorf("a gang that waits whole is no episode: %+v", got)
	}
	r.pod(watch.Added, podObject("r", "g2", "n", "n", "100m", corev1.PodRunning))
	if got := r.Report().Starting; got.Count != 1 {
		t.Errorf("an episode that goes on: %+v", got)
	}
	r.pod(watch.Modified, podObject("h", "g2", "n", "n", "100m", corev1.PodRunning))
	r.pod(watch.Modified, homeless)
	if got := r.Report(); got.Starting.Count != 1 || got.Healing.Count != 1 || got.Gangs != 2 {
		t.Errorf("starting %+v, healing %+v, gangs %d", got.Starting, got.Healing, got.Gangs)
	}
}

// TestAListIsCheckedAsAWhole: when a list replaces what was known, the earlier pods
// hold no place beside those that have it now.
func TestAListIsCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	for _, name := range []string{"n", "m"} {
		r.node(watch.Added, nodeObject(name, "2"))
	}
	r.pod(watch.Added, podObject("gone", "g", "n", "n", "2", corev1.PodRunning))
	r.pod(watch.Added, podObject("moved", "g", "m", "m", "2", corev1.PodRunning))
	r.allPods([]any{podObject("moved", "g", "n", "n", "2", corev1.PodRunning), podObject("new", "h", "m", "m", "2", corev1.PodRunning)})
	if len(r.seen.Violations) != 0 || len(r.pods) != 2 || len(r.gangs) != 2 {
		t.Errorf("violations %v, %d pods and %d gangs; want none, two and two", r.seen.Violations, len(r.pods), len(r.gangs))
	}
	r.allPods([]any{
		podObject("moved", "g", "n", "n", "2", corev1.PodRunning), podObject("new", "h", "n", "n", "1", corev1.PodRunning),
		podObject("other", "h", "m", "m", "3", corev1.PodRunning),
	})
	if len(r.seen.Violations) != 2 {
		t.Errorf("violations %v, want both nodes over-committed", r.seen.Violations)
	}
}
