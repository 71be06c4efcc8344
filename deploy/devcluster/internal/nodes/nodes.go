// Package nodes changes the nodes of a running dev cluster through its API
// server: it adds them, takes them out of service, breaks and repairs them.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

// concurrency is the number of nodes that are changed at the same time.
const concurrency = 32

// ErrNoneSelected is returned when a selection has no nodes.
var ErrNoneSelected = errors.New("no node is selected")

// Selection is which nodes are meant.
type Selection struct {
	Globs    []string // Globs match names, as "gpu-00*"; none match all names.
	Selector string   // Selector is a label selector.
	Count    int      // Count is the most to take, in the order of names; 0 takes all.
}

// Select returns the names of the nodes that s means.
func Select(ctx context.Context, client kubernetes.Interface, s Selection) ([]string, error) {
	for _, glob := range s.Globs {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("node name %q: %w", glob, err)
		}
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: s.Selector})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var names []string
	for _, node := range list.Items {
		if s.matches(node.Name) && (s.Count == 0 || len(names) < s.Count) {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w (names %q, labels %q)", ErrNoneSelected, s.Globs, s.Selector)
	}
	return names, nil
}

func (s Selection) matches(name string) bool {
	for _, glob := range s.Globs {
		if ok, _ := path.Match(glob, name); ok {
			return true
		}
	}
	return len(s.Globs) == 0
}

// Create creates nodes.
func Create(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, node := range nodes {
		group.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("creating node %q: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Add creates count more nodes like those of group and returns their names.
func Add(ctx context.Context, client kubernetes.Interface, group fleet.Group) ([]string, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	taken := make(map[string]bool, len(list.Items))
	for _, node := range list.Items {
		taken[node.Name] = true
	}
	added := group.Nodes(func(name string) bool { return taken[name] })
	if len(added) == 0 {
		return nil, fmt.Errorf("adding nodes: group %q has no free name", group.Name)
	}
	if err := Create(ctx, client, added); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(added))
	for _, node := range added {
		names = append(names, node.Name)
	}
	return names, nil
}

// Remove deletes nodes and, unless leavePods is set, the pods on them: their
// machine is gone. Left alone, they are found and deleted within a minute by the
// controller manager.
func Remove(ctx context.Context, client kubernetes.Interface, names []string, leavePods bool) error {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		return client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil || leavePods {
		return err
	}
	return each(ctx, names, func(ctx context.Context, name string) error {
		return deletePods(ctx, client, name)
	})
}

func deletePods(ctx context.Context, client kubernetes.Interface, node string) error {
	pods, err := podsOn(ctx, client, node)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		now := int64(0)
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

func podsOn(ctx context.Context, client kubernetes.Interface, node string) ([]corev1.Pod, error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + node,
	})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return pods.Items, nil
}

// each does something to every node.
func each(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, name := range names {
		group.Go(func() error {
			if err := do(ctx, name); err != nil {
				return fmt.Errorf("node %q: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// change reads a node, changes it and writes it; on a conflict it tries again.
func change(ctx context.Context, client kubernetes.Interface, name string, edit func(*corev1.Node)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(node)
		_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// SetUnschedulable cordons nodes, or uncordons them.
func SetUnschedulable(ctx context.Context, client kubernetes.Interface, names []string, unschedulable bool) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		return change(ctx, client, name, func(node *corev1.Node) { node.Spec.Unschedulable = unschedulable })
	})
}

// Label sets and removes labels of nodes.
func Label(ctx context.Context, client kubernetes.Interface, names []string, set map[string]string, remove []string) error {
	return each(ctx, names, func(ctx context.Context, name string) error {
		return change(ctx, client, name, func(node *corev1.Node) {
			for _, key := range remove {
				delete(node.Labels, key)
			}
			for key, value := range set {
				metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
			}
		})
	})
}
