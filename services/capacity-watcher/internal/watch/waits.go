package watch

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

const (
	// waitMessageMost bounds what Kubernetes reports of a wait, and waitNameMost the names of
	// containers and reasons, in bytes.
	waitMessageMost = 200
	waitNameMost    = 63

	pullBackOff  = "ImagePullBackOff"
	crashBackOff = "CrashLoopBackOff"
	creating     = "ContainerCreating"
)

// waits returns what keeps a pod from being ready, as far as its status has it; empty for a pod
// that is ready, has ended, or starts as it should. The text is the same for as long as the
// cause is: each change of it is a message and a row.
func waits(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending && pod.Status.Phase != corev1.PodRunning {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return "cannot be scheduled: " + bounded(unscheduled(condition.Message), waitMessageMost)
		}
	}
	for _, kind := range containersOf(pod) {
		for i := range kind.statuses {
			status := &kind.statuses[i]
			if reason, message := containerWaits(status); reason != "" {
				return waitText(kind.name, status.Name, reason, message)
			}
		}
	}
	return beingCreated(pod)
}

// statusesOf are the statuses of containers of one kind.
type statusesOf struct {
	name     string
	statuses []corev1.ContainerStatus
}

func containersOf(pod *corev1.Pod) []statusesOf {
	return []statusesOf{{"init container", pod.Status.InitContainerStatuses}, {"container", pod.Status.ContainerStatuses}}
}

func waitText(kind, name, reason, message string) string {
	text := fmt.Sprintf("%s %s waits: %s", kind, bounded(name, waitNameMost), bounded(reason, waitNameMost))
	if message != "" {
		text += ": " + bounded(message, waitMessageMost)
	}
	return text
}

// beingCreated names the first container that the kubelet is creating; empty when there is
// none. The status does not have the cause of a long wait: the kubelet gives it in events,
// which capacity-watcher may not read. The condition PodReadyToStartContainers (Kubernetes
// 1.29 or newer) shows what the kubelet is at.
func beingCreated(pod *corev1.Pod) string {
	for _, kind := range containersOf(pod) {
		for i := range kind.statuses {
			waiting := kind.statuses[i].State.Waiting
			if waiting == nil || waiting.Reason != creating {
				continue
			}
			at := "the kubelet prepares its volumes and network, or pulls its image"
			for _, condition := range pod.Status.Conditions {
				switch {
				case condition.Type != corev1.PodReadyToStartContainers:
				case condition.Status == corev1.ConditionTrue:
					at = "its image is being pulled"
				case condition.Status == corev1.ConditionFalse:
					at = "its volumes (a missing Secret or ConfigMap is one) or its network are not ready"
				}
			}
			return waitText(kind.name, kind.statuses[i].Name, creating, at+"; kubectl describe pod shows the kubelet's events")
		}
	}
	return ""
}

// containerWaits returns why a container does not run; empty when it runs, has ended well, or
// is being started.
func containerWaits(status *corev1.ContainerStatus) (reason, message string) {
	waiting, ended := status.State.Waiting, status.LastTerminationState.Terminated
	if status.State.Terminated != nil && status.State.Terminated.ExitCode != 0 {
		ended = status.State.Terminated
	}
	switch {
	case status.Ready || status.State.Terminated != nil && status.State.Terminated.ExitCode == 0:
		return "", ""
	// A container that keeps ending runs now and then.
	case ended != nil && (waiting != nil && waiting.Reason == crashBackOff || status.RestartCount > 1):
		return crashBackOff, strings.TrimSuffix(fmt.Sprintf("it ended with exit code %d, %s", ended.ExitCode, ended.Reason), ", ")
	case waiting == nil || waiting.Reason == "" || waiting.Reason == creating || waiting.Reason == "PodInitializing":
		return "", ""
	case waiting.Reason == pullBackOff || waiting.Reason == "ErrImagePull":
		return pullBackOff, pullMessage(status.Image, waiting)
	}
	return waiting.Reason, backOffTime.ReplaceAllString(waiting.Message, "back-off restarting")
}

// backOffTime is how long the kubelet waits this time.
var backOffTime = regexp.MustCompile(`back-off \S+ restarting`)

// pullMessage returns what the kubelet reports while it waits to pull an image again. While it
// tries, it gives the cause alone; a text that came and went would change all the time.
func pullMessage(image string, waiting *corev1.ContainerStateWaiting) string {
	if waiting.Reason == pullBackOff && waiting.Message != "" {
		return waiting.Message
	}
	text := fmt.Sprintf("Back-off pulling image %q", image)
	if waiting.Message != "" {
		text += ": ErrImagePull: " + waiting.Message
	}
	return text
}

// nodesOf are the counts in a message of kube-scheduler.
var nodesOf = regexp.MustCompile(`^\d+/\d+ nodes are available: `)

// unscheduled returns the causes in a message of kube-scheduler. The numbers of nodes change
// with each node of the cluster.
func unscheduled(message string) string {
	message, _, _ = strings.Cut(message, " preemption:")
	if !nodesOf.MatchString(message) {
		return message
	}
	causes := strings.Split(strings.TrimSuffix(nodesOf.ReplaceAllString(message, ""), "."), ", ")
	for i, cause := range causes {
		causes[i] = strings.TrimLeft(strings.TrimLeft(cause, "0123456789"), " ")
	}
	slices.Sort(causes)
	return strings.Join(slices.Compact(causes), ", ")
}

// bounded returns text on one line that can be stored, of at most the given number of bytes.
func bounded(text string, most int) string {
	if len(text) > 4*most {
		text = text[:4*most] // the rest need not be looked at
	}
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-len(" ...")], "") + " ..."
	}
	return cmp.Or(text, "no message")
}
