package app_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
)

// TestChains: with the service's rights, a pod's chain reaches the object that Muster
// creates.
func TestChains(t *testing.T) {
	t.Parallel()
	w, nats := newWorld(t, "chains"), startNATS(t, -1)
	w.addNode("chains-a")
	labels := map[string]string{kube.ClusterLabel: clusterName, kube.WorkloadLabel: "chains-gang", kube.AttemptLabel: "1", kube.PodSetLabel: "p"}
	one := int32(1)
	deployments := w.client.AppsV1().Deployments("default")
	deployment, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chains"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "i"}}, NodeSelector: map[string]string{"nowhere": "yes"},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = deployments.Delete(context.WithoutCancel(t.Context()), "chains", metav1.DeleteOptions{})
	})
	w.run(nats.URL())
	r := newReader(t, nats.URL())
	r.await("the chain up to the Deployment", func() bool {
		g := r.gang("chains-gang")
		if g == nil || len(g.Pods) != 1 || g.Pods[0].Chain != 1 {
			return false
		}
		chain := g.Chains[0]
		return chain.Namespace == "default" && len(chain.Owners) == 2 && chain.Owners[1] == string(deployment.UID)
	})
}
