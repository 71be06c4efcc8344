package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/spec/capacity"
)

// pinnings are the ways that are compared, the one of the dispatcher first.
func pinnings() []pinning {
	return []pinning{
		{
			name: "gated, then pinned and lifted by a patch",
			pod: func(pod *corev1.Pod, _ place, _ []place) {
				pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: bareGate}}
			},
			pin: patched,
		},
		{
			name:    "pinned at creation by a policy's parameters",
			prepare: installPins,
			pod:     func(pod *corev1.Pod, _ place, _ []place) { pod.Labels[pinnedLabel] = "true" },
		},
		{
			name: "affinity to all nodes of the gang, no pin",
			pod:  func(pod *corev1.Pod, _ place, gang []place) { pod.Spec.Affinity = among(gang) },
		},
		{
			name: "bound by the dispatcher, past the scheduler",
			pod:  func(pod *corev1.Pod, _ place, _ []place) { pod.Spec.SchedulerName = ownScheduler },
			pin:  boundTo,
		},
	}
}

// ownScheduler is served by no scheduler.
const ownScheduler = "bench.muster.dev/none"

// patched does what the dispatcher does for each pod.
func patched(ctx context.Context, s *site, pod *corev1.Pod, at place) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "remove", "path": "/spec/schedulingGates"},
		{"op": "add", "path": "/spec/nodeSelector", "value": map[string]string{capacity.HostnameLabel: at.node}},
	})
	if err != nil {
		return fmt.Errorf("encode the patch of pod %q: %w", pod.Name, err)
	}
	if _, err := s.kube.CoreV1().Pods(s.namespace).Patch(ctx, pod.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("pin pod %q: %w", pod.Name, err)
	}
	return nil
}

// boundTo binds a pod to its node.
func boundTo(ctx context.Context, s *site, pod *corev1.Pod, at place) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: at.node},
	}
	if err := s.kube.CoreV1().Pods(s.namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind pod %q to node %q: %w", pod.Name, at.node, err)
	}
	return nil
}

// among has a pod scheduled to any node of the gang.
func among(gang []place) *corev1.Affinity {
	names := make([]string, 0, len(gang)/podsOfNode+1)
	for i := 0; i < len(gang); i += podsOfNode {
		names = append(names, gang[i].node)
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: capacity.HostnameLabel, Operator: corev1.NodeSelectorOpIn, Values: names},
		}}},
	}}}
}

const (
	// pinsName is the name of the policy, of its binding, and of its parameters.
	pinsName = "bench-pins"
	// pinnedLabel marks pods that the policy pins.
	pinnedLabel = "bench.muster.dev/pinned"
	// policyServed bounds the wait until the API server knows a policy.
	policyServed = 30 * time.Second
)

// installPins creates a policy that pins pods by their index, and the ConfigMap with the node of
// each, and waits until a pod is pinned in a dry run.
func installPins(ctx context.Context, s *site, gang []place) error {
	nodes := map[string]string{}
	for _, at := range gang {
		nodes[fmt.Sprint(at.index)] = at.node
	}
	if _, err := s.kube.CoreV1().ConfigMaps(s.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: pinsName}, Data: nodes}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the parameters of the policy: %w", err)
	}
	policies := s.kube.AdmissionregistrationV1()
	if _, err := policies.MutatingAdmissionPolicies().Create(ctx, pinPolicy(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	deny := admissionregistration.DenyAction
	if _, err := policies.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistration.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: pinsName},
		Spec: admissionregistration.MutatingAdmissionPolicyBindingSpec{
			PolicyName: pinsName, ParamRef: &admissionregistration.ParamRef{Name: pinsName, Namespace: s.namespace, ParameterNotFoundAction: &deny},
		},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the binding of the policy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, policyServed)
	defer cancel()
	for {
		probe := barePod("probe", 0)
		probe.Labels[pinnedLabel] = "true"
		made, err := s.kube.CoreV1().Pods(s.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && made.Spec.NodeSelector[capacity.HostnameLabel] == gang[0].node {
			return nil
		}
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("create a pod in a dry run: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the policy pins a pod: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pinPolicy pins each pod that has the label to the node that the parameters have for its index.
func pinPolicy() *admissionregistration.MutatingAdmissionPolicy {
	fail := admissionregistration.Fail
	return &admissionregistration.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: pinsName},
		Spec: admissionregistration.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, ReinvocationPolicy: admissionregistration.NeverReinvocationPolicy,
			ParamKind: &admissionregistration.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionregistration.MatchResources{ResourceRules: []admissionregistration.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistration.RuleWithOperations{
					Operations: []admissionregistration.OperationType{admissionregistration.Create},
					Rule:       admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			MatchConditions: []admissionregistration.MatchCondition{{
				Name: "is-pinned", Expression: fmt.Sprintf("has(object.metadata.labels) && %q in object.metadata.labels", pinnedLabel),
			}},
			Mutations: []admissionregistration.Mutation{{
				PatchType: admissionregistration.PatchTypeJSONPatch,
				JSONPatch: &admissionregistration.JSONPatch{Expression: fmt.Sprintf(
					`[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {%q: params.data[object.metadata.labels[%q]]}}]`, capacity.HostnameLabel, indexLabel)},
			}},
		},
	}
}
