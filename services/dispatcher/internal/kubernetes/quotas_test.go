package kubernetes

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/services/dispatcher/internal/gang"
)

func list(of ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		amounts[corev1.ResourceName(of[i])] = apiresource.MustParse(of[i+1])
	}
	return amounts
}

func texts(amounts corev1.ResourceList) map[string]string {
	texts := map[string]string{}
	for name, amount := range amounts {
		texts[string(name)] = amount.String()
	}
	return texts
}

// member is a pod with a GPU that the API server has defaulted.
func member() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "own"}}
	p.Spec.PriorityClassName = "high"
	p.Spec.Containers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1", "nvidia.com/gpu", "2"), Limits: list("cpu", "2", "nvidia.com/gpu", "2")}},
		{Resources: corev1.ResourceRequirements{Requests: list("cpu", "500m", "memory", "1Gi")}},
	}
	p.Status.QOSClass = corev1.PodQOSBurstable
	return p
}

// TestQuotaOf: a quota charges a pod as Kubernetes does, for what it limits and for pods of
// its scopes.
func TestQuotaOf(t *testing.T) {
	t.Parallel()
	everything := list("pods", "9", "count/pods", "9", "cpu", "9", "requests.cpu", "9", "memory", "9Gi", "requests.nvidia.com/gpu", "9", "limits.cpu", "9",
		"limits.memory", "9", "services", "9", "nvidia.com/gpu", "9")
	one := map[string]string{"pods": "1"}
	class := func(operator corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
		}}}
	}
	scoped := func(scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: scopes}
	}
	for name, c := range map[string]struct {
		spec corev1.ResourceQuotaSpec
		hard corev1.ResourceList
		want map[string]string
	}{
		"every name of an amount": {hard: everything, want: map[string]string{
			"pods": "1", "count/pods": "1", "cpu": "1500m", "requests.cpu": "1500m", "memory": "1Gi", "requests.nvidia.com/gpu": "2", "limits.cpu": "2",
		}},
		"nothing of pods":          {hard: list("services", "1"), want: map[string]string{}},
		"pods that do not end":     {spec: scoped(corev1.ResourceQuotaScopeNotTerminating), hard: list("pods", "1"), want: one},
		"pods that end":            {spec: scoped(corev1.ResourceQuotaScopeTerminating), hard: list("pods", "1"), want: map[string]string{}},
		"without requests":         {spec: scoped(corev1.ResourceQuotaScopeBestEffort), hard: list("pods", "1"), want: map[string]string{}},
		"with requests":            {spec: scoped(corev1.ResourceQuotaScopeNotBestEffort), hard: list("pods", "1"), want: one},
		"one scope of two":         {spec: scoped(corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating), hard: list("pods", "1"), want: map[string]string{}},
		"an unknown scope":         {spec: scoped("New"), hard: list("pods", "1"), want: map[string]string{}},
		"its priority class":       {spec: class(corev1.ScopeSelectorOpIn, "low", "high"), hard: list("pods", "1"), want: one},
		"another priority class":   {spec: class(corev1.ScopeSelectorOpIn, "low"), hard: list("pods", "1"), want: map[string]string{}},
		"all but a priority class": {spec: class(corev1.ScopeSelectorOpNotIn, "high"), hard: list("pods", "1"), want: map[string]string{}},
		"any priority class":       {spec: class(corev1.ScopeSelectorOpExists), hard: list("pods", "1"), want: one},
		"no priority class":        {spec: class(corev1.ScopeSelectorOpDoesNotExist), hard: list("pods", "1"), want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := chargedFor(&corev1.ResourceQuota{Spec: c.spec, Status: corev1.ResourceQuotaStatus{Hard: c.hard}}, member())
			if !maps.Equal(texts(got), c.want) {
				t.Errorf("a pod is charged %v, want %v", texts(got), c.want)
			}
		})
	}
}

// TestQuotas: what a quota leaves is by its status, as the API server counts, and a pod
// that is gone says nothing.
func TestQuotas(t *testing.T) {
	t.Parallel()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "q"}}
	quota.Spec.Hard = list("pods", "100")
	quota.Status = corev1.ResourceQuotaStatus{Hard: list("pods", "5"), Used: list("pods", "3")}
	core := fake.NewClientset(quota, member())
	client := &Client{core: core}
	got, err := client.Quotas(t.Context(), "n", []gang.Pod{
		{Namespace: "n", Name: "p", UID: "own", PodSet: "workers"}, {Namespace: "n", Name: "p", UID: "before", PodSet: "others"},
	})
	if err != nil || len(got) != 1 || got[0].Name != "q" || !maps.Equal(texts(got[0].Left), map[string]string{"pods": "2"}) || len(got[0].Charged) != 1 ||
		!maps.Equal(texts(got[0].Charged["workers"]), map[string]string{"pods": "1"}) {
		t.Errorf("quotas are %+v, %v; want q with 2 pods left, which charges a worker for one", got, err)
	}
	if got, err := client.Quotas(t.Context(), "other", []gang.Pod{{Namespace: "other", Name: "p"}}); got != nil || err != nil {
		t.Errorf("in a namespace without quotas there are %v, %v", got, err)
	}
	core.PrependReactor("list", "resourcequotas", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", errors.New("no"))
	})
	if _, err := client.Quotas(t.Context(), "n", nil); !errors.Is(err, gang.ErrUnknownQuotas) {
		t.Errorf("without the right the error is %v, want %v", err, gang.ErrUnknownQuotas)
	}
}
