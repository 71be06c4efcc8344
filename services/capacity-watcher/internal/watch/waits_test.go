package watch

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatAPodWaitsFor: what keeps a pod from being ready is named, and reads the same
// through the steps of a back-off.
func TestWhatAPodWaitsFor(t *testing.T) {
	t.Parallel()
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "ray-worker", Image: "x:1", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}
	}
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	crashed := waiting(crashBackOff, "back-off 40s restarting failed container=ray-worker")
	crashed.RestartCount, crashed.LastTerminationState.Terminated = 1, ended
	runsAgain := corev1.ContainerStatus{Name: "ray-worker", RestartCount: 3, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	runsAgain.LastTerminationState.Terminated = ended
	const pull = `container ray-worker waits: ImagePullBackOff: Back-off pulling image "x:1": ErrImagePull: x:1: not found`
	const events = "; kubectl describe pod shows the kubelet's events"
	const crash = "container ray-worker waits: CrashLoopBackOff: it ended with exit code 1, Error"
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"back-off of a pull":           {waiting(pullBackOff, `Back-off pulling image "x:1": ErrImagePull: x:1: not found`), pull},
		"a pull that fails":            {waiting("ErrImagePull", "x:1: not found"), pull},
		"an older kubelet":             {waiting(pullBackOff, ""), `container ray-worker waits: ImagePullBackOff: Back-off pulling image "x:1"`},
		"a Secret that does not exist": {waiting("CreateContainerConfigError", `secret "s" not found`), `container ray-worker waits: CreateContainerConfigError: secret "s" not found`},
		"a name that is no image":      {waiting("InvalidImageName", "a\x00b\n\nc\xff"), "container ray-worker waits: InvalidImageName: a b c?"},
		"it crashes":                   {crashed, crash},
		"it runs between crashes":      {runsAgain, crash},
		"it is created":                {waiting("ContainerCreating", ""), "container ray-worker waits: ContainerCreating: the kubelet prepares its volumes and network, or pulls its image" + events},
		"it waits for the head":        {waiting("PodInitializing", ""), ""},
		"it is ready":                  {corev1.ContainerStatus{Ready: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{c.status}}}
			if got := waits(pod); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses, nil
			if got, want := waits(pod), strings.Replace(c.want, "container", "init container", 1); got != want {
				t.Errorf("of an init container it says %q, want %q", got, want)
			}
			pod.DeletionTimestamp = &metav1.Time{}
			if got := waits(pod); got != "" {
				t.Errorf("of a pod that is deleted it says %q", got)
			}
		})
	}
	long := waits(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		waiting(strings.Repeat("R", 1<<20), strings.Repeat("é", 1<<20)),
	}}})
	if len(long) > 400 {
		t.Errorf("a wait has %d bytes", len(long))
	}
}

// TestWhyAPodIsNotScheduled: the causes of kube-scheduler are named without the numbers of
// nodes, which change with each node.
func TestWhyAPodIsNotScheduled(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: }. preemption: 0/3 nodes are available: 3 x.": "Insufficient cpu, node(s) had untolerated taint {a: }",
		"0/4 nodes are available: 1 node(s) had untolerated taint {a: }, 3 Insufficient cpu.":                                           "Insufficient cpu, node(s) had untolerated taint {a: }",
		`persistentvolumeclaim "data" not found`: `persistentvolumeclaim "data" not found`,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message},
			}}}
			if got := waits(pod); got != "cannot be scheduled: "+want {
				t.Errorf("it says %q, want %q", got, want)
			}
			pod.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
			if got := waits(pod); got != "" {
				t.Errorf("at its gate it says %q", got)
			}
		})
	}
}

// TestWhatTheKubeletIsAt: a pod that hangs while its containers are created says as much as
// its status does: whether volumes and network are ready. A container that waits for the init
// containers says nothing, and one with a cause comes first.
func TestWhatTheKubeletIsAt(t *testing.T) {
	t.Parallel()
	waiting := func(name, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	sandbox := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status}}
	}
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		containers []corev1.ContainerStatus
		want       string
	}{
		"a volume is missing": {sandbox(corev1.ConditionFalse), []corev1.ContainerStatus{waiting("ray-head", creating, "")},
			"container ray-head waits: ContainerCreating: its volumes (a missing Secret or ConfigMap is one) or its network are not ready; kubectl describe pod shows the kubelet's events"},
		"a slow pull": {sandbox(corev1.ConditionTrue), []corev1.ContainerStatus{waiting("ray-head", creating, "")},
			"container ray-head waits: ContainerCreating: its image is being pulled; kubectl describe pod shows the kubelet's events"},
		"init containers run": {sandbox(corev1.ConditionTrue), []corev1.ContainerStatus{waiting("ray-head", "PodInitializing", "")}, ""},
		"another has a cause": {sandbox(corev1.ConditionTrue), []corev1.ContainerStatus{waiting("ray-head", creating, ""), waiting("sidecar", "CreateContainerConfigError", `secret "s" not found`)},
			`container sidecar waits: CreateContainerConfigError: secret "s" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: c.conditions, ContainerStatuses: c.containers}}
			if got := waits(pod); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
