package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	resourcehelper "k8s.io/component-helpers/resource"

	"muster.dev/muster/services/dispatcher/internal/gang"
)

// quotasMost bounds the quotas of a namespace that are looked at; more of them are a
// mistake, and a gang in such a namespace starts when all its pods exist.
const quotasMost = 100

// Quotas reads, uncached, the ResourceQuotas of a namespace that charge pods like those
// given, one of each pod set. Pods that are gone are left out. The error is
// gang.ErrUnknownQuotas when the dispatcher may not read them.
func (c *Client) Quotas(ctx context.Context, namespace string, like []gang.Pod) ([]gang.Quota, error) {
	list, err := c.core.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{Limit: quotasMost})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: %w", gang.ErrUnknownQuotas, err)
	case err != nil:
		return nil, fmt.Errorf("list ResourceQuotas of namespace %s: %w", namespace, err)
	case list.Continue != "":
		return nil, fmt.Errorf("%w: namespace %s has more than %d", gang.ErrUnknownQuotas, namespace, quotasMost)
	case len(list.Items) == 0:
		return nil, nil
	}
	quotas := make([]gang.Quota, 0, len(list.Items))
	for i := range list.Items {
		quotas = append(quotas, quotaOf(&list.Items[i]))
	}
	for _, one := range like {
		pod, err := c.pod(ctx, one)
		if err != nil {
			return nil, err
		}
		if pod == nil {
			continue
		}
		for i := range list.Items {
			if charged := chargedFor(&list.Items[i], pod); len(charged) > 0 {
				quotas[i].Charged[one.PodSet] = charged
			}
		}
	}
	return quotas, nil
}

// pod reads a whole pod, which the cache does not have; nil when it is gone. The
// dispatcher may list pods, and not get them.
func (c *Client) pod(ctx context.Context, of gang.Pod) (*corev1.Pod, error) {
	list, err := c.core.CoreV1().Pods(of.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("read pod %s/%s: %w", of.Namespace, of.Name, err)
	}
	if len(list.Items) == 0 || string(list.Items[0].UID) != of.UID {
		return nil, nil
	}
	return &list.Items[0], nil
}

// quotaOf is what a ResourceQuota leaves, by its status: the API server admits by that.
func quotaOf(quota *corev1.ResourceQuota) gang.Quota {
	left := corev1.ResourceList{}
	for name, hard := range quota.Status.Hard {
		free := hard.DeepCopy()
		free.Sub(quota.Status.Used[name])
		left[name] = free
	}
	return gang.Quota{Name: quota.Name, Left: left, Charged: map[string]corev1.ResourceList{}}
}

// chargedFor is what the quota charges for the pod, of what it limits, as Kubernetes'
// evaluator of pods does; empty when its scopes leave the pod out.
func chargedFor(quota *corev1.ResourceQuota, pod *corev1.Pod) corev1.ResourceList {
	for _, scope := range quota.Spec.Scopes {
		if !inScope(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, pod) {
			return nil
		}
	}
	if quota.Spec.ScopeSelector != nil {
		for _, scope := range quota.Spec.ScopeSelector.MatchExpressions {
			if !inScope(scope, pod) {
				return nil
			}
		}
	}
	charged := corev1.ResourceList{}
	for name, amount := range usageOf(pod) {
		if _, limited := quota.Status.Hard[name]; limited {
			charged[name] = amount
		}
	}
	return charged
}

// inScope reports whether a scope covers the pod. One that Muster does not know covers
// none: the gang starts then, and is torn down at its ready deadline if it cannot be whole.
func inScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	terminating := pod.Spec.ActiveDeadlineSeconds != nil
	bestEffort := pod.Status.QOSClass == corev1.PodQOSBestEffort
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		return classMatches(scope, pod.Spec.PriorityClassName)
	default:
		return false
	}
}

func classMatches(scope corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch scope.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(scope.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(scope.Values, class)
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	default:
		return false
	}
}

// usageOf is what a pod uses, under the names that quotas have for it: requests under
// two, but those of extended resources under one.
func usageOf(pod *corev1.Pod) corev1.ResourceList {
	one := *apiresource.NewQuantity(1, apiresource.DecimalSI)
	usage := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, amount := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		usage[corev1.DefaultResourceRequestsPrefix+name] = amount
		if !strings.Contains(string(name), "/") {
			usage[name] = amount
		}
	}
	for name, amount := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			usage["limits."+name] = amount
		}
	}
	return usage
}
