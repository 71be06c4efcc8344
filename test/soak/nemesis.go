package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"muster.dev/muster/pkg/manifest/ray"
)

// nemesis disturbs: each step it draws one deed.
type nemesis struct {
	*soak
	random *rand.Rand
	deeds  map[string]int
	next   int             // numbers unmanaged pods
	broken map[string]bool // nodes, by what undoes it
	gone   map[string]bool
}

// step is the time between two deeds.
const step = 700 * time.Millisecond

func (n *nemesis) run(ctx context.Context) {
	n.deeds, n.broken, n.gone = map[string]int{}, map[string]bool{}, map[string]bool{}
	tick := time.NewTicker(step)
	defer tick.Stop()
	deeds := []struct {
		name string
		do   func(context.Context) error
	}{
		{"foreign pod comes", n.foreign}, {"foreign pod comes", n.foreign}, {"foreign pod goes", n.unforeign}, {"foreign pod goes", n.unforeign},
		{"pod deleted", n.deletePod}, {"pod deleted", n.deletePod}, {"pod fails", n.failPod},
		{"object deleted", n.deleteObject}, {"group resized", n.resize}, {"group resized", n.resize}, {"group resized", n.resize},
		{"node removed", n.remove}, {"node added", n.add}, {"node added", n.add},
		{"node broken", n.breakNode}, {"node repaired", n.repairNode}, {"node repaired", n.repairNode},
		{"node cordoned", n.cordon}, {"node uncordoned", n.uncordon}, {"node uncordoned", n.uncordon},
		{"node drained", n.drain},
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		deed := deeds[n.random.IntN(len(deeds))]
		// A deed that finds nothing to do, or comes too late, is none. One that was
		// begun is ended, so that it is known what is to be undone.
		if err := deed.do(context.WithoutCancel(ctx)); err == nil {
			n.deeds[deed.name]++
		}
	}
}

// repair undoes what stands in the way of gangs.
func (n *nemesis) repair(ctx context.Context) error {
	for name := range n.broken {
		if err := n.Node(ctx, "repair", name); err != nil {
			return fmt.Errorf("repair node %s: %w", name, err)
		}
		delete(n.broken, name)
	}
	for name := range n.gone {
		if err := n.addNamed(ctx, name); err != nil {
			return err
		}
	}
	if err := n.Node(ctx, "uncordon", n.Pool+"-*"); err != nil {
		return fmt.Errorf("uncordon nodes: %w", err)
	}
	for i := range n.nodes {
		if err := n.taint(ctx, n.NodeName(group, i)); err != nil { // without any
			return fmt.Errorf("take taints away: %w", err)
		}
	}
	now := int64(0)
	return n.Kube.CoreV1().Pods(n.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
		metav1.ListOptions{LabelSelector: "soak=foreign"})
}

func (n *nemesis) node() string { return n.NodeName(group, n.random.IntN(n.nodes)) }

var errNothing = fmt.Errorf("there is nothing to do")

// foreign brings a pod that the scheduler places where it finds room.
func (n *nemesis) foreign(ctx context.Context) error {
	n.next++
	requests := corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(1 + n.random.IntN(3))), "nvidia.com/gpu": resource.MustParse(fmt.Sprint(n.random.IntN(3)))}
	_, err := n.Kube.CoreV1().Pods(n.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", n.next), Labels: map[string]string{"soak": "foreign"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"test.muster.dev/pool": n.Pool},
			Containers:   []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}},
		},
	}, metav1.CreateOptions{})
	return err
}

func (n *nemesis) unforeign(ctx context.Context) error {
	name, err := n.anyPod(ctx, "soak=foreign")
	if err != nil {
		return err
	}
	return n.Kube.CoreV1().Pods(n.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func (n *nemesis) anyPod(ctx context.Context, labels string) (string, error) {
	list, err := n.Kube.CoreV1().Pods(n.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil || len(list.Items) == 0 {
		return "", errNothing
	}
	return list.Items[n.random.IntN(len(list.Items))].Name, nil
}

func (n *nemesis) deletePod(ctx context.Context) error {
	name, err := n.anyPod(ctx, "muster.dev/workload")
	if err != nil {
		return err
	}
	return n.Kube.CoreV1().Pods(n.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

func (n *nemesis) failPod(ctx context.Context) error {
	name, err := n.anyPod(ctx, "muster.dev/pod-set=workers")
	if err != nil {
		return err
	}
	_, err = n.Kube.CoreV1().Pods(n.Namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`),
		metav1.PatchOptions{}, "status")
	return err
}

func (n *nemesis) deleteObject(ctx context.Context) error {
	name, err := n.anyCluster(ctx)
	if err != nil {
		return err
	}
	return n.clusters().Delete(ctx, name, metav1.DeleteOptions{})
}

func (n *nemesis) clusters() dynamic.ResourceInterface {
	return n.Dynamic.Resource(ray.Resource("rayclusters")).Namespace(n.Namespace)
}

// anyCluster draws a RayCluster that is no job's: of one KubeRay would not notice
// that it is gone, and no owner changes its size.
func (n *nemesis) anyCluster(ctx context.Context) (string, error) {
	list, err := n.clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	items := slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		return strings.HasPrefix(u.GetName(), "job-") || u.GetDeletionTimestamp() != nil
	})
	if len(items) == 0 {
		return "", errNothing
	}
	return items[n.random.IntN(len(items))].GetName(), nil
}

// resize changes how many workers a cluster has, as its owner does.
func (n *nemesis) resize(ctx context.Context) error {
	name, err := n.anyCluster(ctx)
	if err != nil {
		return err
	}
	var patch []map[string]any
	size := n.random.IntN(7)
	for _, field := range []string{"replicas", "minReplicas", "maxReplicas"} {
		patch = append(patch, map[string]any{"op": "replace", "path": "/spec/workerGroupSpecs/0/" + field, "value": size})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = n.clusters().Patch(ctx, name, types.JSONPatchType, encoded, metav1.PatchOptions{})
	return err
}
