package checker

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels of objects that Muster made or took.
const (
	clusterLabel  = "muster.dev/cluster"
	workloadLabel = "muster.dev/workload"
	attemptLabel  = "muster.dev/attempt"
)

// made are the kinds that Muster creates for a workload.
func made() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "ray.io", Version: "v1", Resource: "rayclusters"}, {Group: "ray.io", Version: "v1", Resource: "rayjobs"},
	}
}

// watchObjects notes every object of the installation that ever exists, by its UID.
// What KubeRay makes has a controller.
func (c *Checker) watchObjects(ctx context.Context, resource schema.GroupVersionResource) {
	options := metav1.ListOptions{LabelSelector: clusterLabel + "=" + c.Cluster}
	for ctx.Err() == nil {
		watching, err := c.Kube.Resource(resource).Namespace(metav1.NamespaceAll).Watch(ctx, options)
		if err != nil {
			continue
		}
		for change := range watching.ResultChan() {
			object, ok := change.Object.(*unstructured.Unstructured)
			if !ok {
				break // the watch is too old
			}
			if metav1.GetControllerOf(object) != nil {
				continue
			}
			labels := object.GetLabels()
			of := attempt{labels[workloadLabel], labels[attemptLabel]}
			c.mu.Lock()
			if c.created[of] == nil {
				c.created[of] = map[string]bool{}
			}
			c.created[of][string(object.GetUID())] = true
			c.mu.Unlock()
		}
		watching.Stop()
	}
}

// NothingLeft reports whether Kubernetes has no pod and no object of the installation
// that makes pods: a finished job may be read.
func (c *Checker) NothingLeft(ctx context.Context) bool {
	ours := metav1.ListOptions{LabelSelector: clusterLabel + "=" + c.Cluster}
	for _, resource := range []schema.GroupVersionResource{made()[0], {Version: "v1", Resource: "pods"}} {
		left, err := c.Kube.Resource(resource).Namespace(metav1.NamespaceAll).List(ctx, ours)
		if err != nil {
			return false
		}
		for _, each := range left.Items {
			// The submitter of a job that may be read has ended, and holds nothing.
			if phase, _, _ := unstructured.NestedString(each.Object, "status", "phase"); resource.Resource != "pods" || phase != "Succeeded" && phase != "Failed" {
				return false
			}
		}
	}
	return true
}
