package helm_test

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// pod is what a NetworkPolicy knows of one.
type pod struct {
	namespace string
	labels    labels.Set
}

// network judges connections by the NetworkPolicies of a chart, as Kubernetes reports
// that they are meant: no plugin of a network takes part.
type network struct {
	policies []networkingv1.NetworkPolicy
	pods     map[string]pod // of the chart, by component
}

func networkOf(t *testing.T, objects map[string]*unstructured.Unstructured) network {
	t.Helper()
	n := network{pods: map[string]pod{}}
	for _, object := range objects {
		switch object.GetKind() {
		case "NetworkPolicy":
			var policy networkingv1.NetworkPolicy
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &policy); err != nil {
				t.Fatal(err)
			}
			n.policies = append(n.policies, policy)
		case "Deployment", "StatefulSet", "Job":
			of, _, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
			if err != nil {
				t.Fatal(err)
			}
			n.pods[of["app.kubernetes.io/component"]] = pod{object.GetNamespace(), of}
		}
	}
	return n
}

func selects(t *testing.T, selector *metav1.LabelSelector, of labels.Set) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(of)
}

// reaches reports whether from may connect to a port of to: the policies that select
// an end isolate it, and one of their rules must allow the connection.
func (n network) reaches(t *testing.T, from, to pod, port int32) bool {
	t.Helper()
	return n.allows(t, networkingv1.PolicyTypeEgress, from, to, port) && n.allows(t, networkingv1.PolicyTypeIngress, to, from, port)
}

func (n network) allows(t *testing.T, direction networkingv1.PolicyType, of, peer pod, port int32) bool {
	t.Helper()
	isolated := false
	for _, policy := range n.policies {
		if policy.Namespace != of.namespace || !slices.Contains(policy.Spec.PolicyTypes, direction) || !selects(t, &policy.Spec.PodSelector, of.labels) {
			continue
		}
		isolated = true
		if direction == networkingv1.PolicyTypeEgress {
			for _, rule := range policy.Spec.Egress {
				if matches(t, policy.Namespace, rule.To, rule.Ports, peer, port) {
					return true
				}
			}
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			if matches(t, policy.Namespace, rule.From, rule.Ports, peer, port) {
				return true
			}
		}
	}
	return !isolated
}

func matches(t *testing.T, own string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, peer pod, port int32) bool {
	t.Helper()
	if len(ports) > 0 && !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port != nil && p.Port.IntVal == port }) {
		return false
	}
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		namespaced := p.NamespaceSelector == nil && peer.namespace == own ||
			p.NamespaceSelector != nil && selects(t, p.NamespaceSelector, labels.Set{"kubernetes.io/metadata.name": peer.namespace})
		return p.IPBlock == nil && namespaced && (p.PodSelector == nil || selects(t, p.PodSelector, peer.labels))
	})
}

// TestWhoReachesTheTrialsParts: with the labels that the chart gives its pods, each
// service that needs NATS or Postgres of the trial reaches it, and nothing else does:
// no other service, no other pod of the namespace, and no pod of a tenant elsewhere,
// whatever labels it has.
func TestWhoReachesTheTrialsParts(t *testing.T) {
	t.Parallel()
	n := networkOf(t, render(t, modes()["trial"]))
	services := []string{"capacity-watcher", "dispatcher", "intake", "migrate", "queue-manager"}
	for part, c := range map[string]struct {
		port  int32
		users []string
	}{
		"nats":     {4222, []string{"capacity-watcher", "dispatcher", "intake", "queue-manager"}},
		"postgres": {5432, []string{"migrate", "queue-manager"}},
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			server, is := n.pods[part]
			if !is {
				t.Fatalf("the trial has no pod of %s; it has %v", part, n.pods)
			}
			for _, service := range services {
				t.Run(service, func(t *testing.T) {
					client, is := n.pods[service]
					if !is {
						t.Fatalf("the trial has no pod of %s", service)
					}
					if got, want := n.reaches(t, client, server, c.port), slices.Contains(c.users, service); got != want {
						t.Errorf("%s reaches it: %v, want %v", service, got, want)
					}
					disguised := pod{"team-a", client.labels}
					if n.reaches(t, disguised, server, c.port) {
						t.Errorf("a tenant's pod with the labels of %s reaches it: %s", service, strings.TrimSpace(client.labels.String()))
					}
					if n.reaches(t, client, server, c.port+1) {
						t.Errorf("%s reaches another port of it", service)
					}
				})
			}
			if n.reaches(t, pod{server.namespace, labels.Set{"app": "neighbour"}}, server, c.port) {
				t.Error("another pod of the namespace reaches it")
			}
			if n.reaches(t, server, pod{"team-a", nil}, 443) {
				t.Error("it reaches a tenant's pod")
			}
		})
	}
}
