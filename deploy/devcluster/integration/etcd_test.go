package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testEtcdGoesBack: what was made since etcd was saved is gone, what was removed is
// there once more, and the cluster works on.
func testEtcdGoesBack(t *testing.T, i *instance) {
	before := i.gpuPod(t, "before", 1)
	i.waitRunning(t, before)
	uid := before.UID
	i.do(t, "etcd", "save")
	after := i.gpuPod(t, "after", 1)
	if err := i.client.Delete(t.Context(), before, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	i.waitGone(t, before)
	i.do(t, "etcd", "restore")

	i.waitRunning(t, before)
	if err := i.client.Get(t.Context(), client.ObjectKeyFromObject(after), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod that was made later: %v, want not found", err)
	}
	if before.UID != uid {
		t.Errorf("the pod that was deleted has UID %s, want the %s that it had", before.UID, uid)
	}
	i.waitRunning(t, i.gpuPod(t, "next", 1))
}

func (i *instance) waitRunning(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
		return ""
	})
}
