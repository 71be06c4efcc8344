package launch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const readyPoll = 50 * time.Millisecond

// waitServiceAccount waits for the service account that pods of the default
// namespace run under; until it is there the API server refuses them.
func waitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the default service account: %w", err)
	}
	return nil
}

// waitNodes waits until count nodes are Ready.
func waitNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	ready := 0
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, nil // Asked again.
		}
		ready = 0
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		return ready >= count, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for nodes (%d of %d are Ready): %w", ready, count, err)
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
