package kube

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/spec/resource"
)

// Amounts turns Kubernetes' quantities into exact amounts: CPU into millicores,
// everything else into units, both rounded up. It refuses negative quantities, those
// beyond int64, and fractions of resources that come whole, such as devices.
func Amounts(list corev1.ResourceList) (resource.List, error) {
	amounts := make(resource.List, len(list))
	for name, quantity := range list {
		amount, err := amountOf(resource.Name(name), quantity)
		if err != nil {
			return nil, err
		}
		amounts[resource.Name(name)] = amount
	}
	return amounts, nil
}

func amountOf(name resource.Name, quantity apiresource.Quantity) (int64, error) {
	if extreme(quantity) {
		return 0, fmt.Errorf("%s: a quantity is more than can be counted", name)
	}
	if quantity.Sign() < 0 {
		return 0, fmt.Errorf("%s: %s is negative; want zero or more", name, quantity.String())
	}
	limit, amount := int64(math.MaxInt64), quantity.Value
	if name == resource.CPU {
		limit, amount = math.MaxInt64/1000, quantity.MilliValue
	}
	if quantity.CmpInt64(limit) >= 0 {
		return 0, fmt.Errorf("%s: %s is more than can be counted", name, quantity.String())
	}
	if resource.Whole(name) && !whole(quantity) {
		return 0, fmt.Errorf("%s: %s is not a whole number; want whole ones, such as 1", name, quantity.String())
	}
	return amount(), nil
}

func whole(quantity apiresource.Quantity) bool {
	rounded := quantity.DeepCopy()
	return rounded.RoundUp(0)
}

// extreme reports whether adding, comparing or printing the quantity would take long,
// because all its digits would be written out. Objects of the API server may have such
// quantities; they come decoded.
func extreme(quantity apiresource.Quantity) bool {
	if quantity.IsZero() {
		return false
	}
	if _, small := quantity.AsInt64(); small {
		return false
	}
	decimal := quantity.AsDec() // of a copy
	return decimal.Scale() < -mostDigits || decimal.Scale() > mostDigits || decimal.UnscaledBig().BitLen() > mostBits
}

// mostDigits and mostBits bound the exponent and the digits of a usable quantity.
const (
	mostDigits = 64
	mostBits   = 256
)

// sound returns an error if a quantity of the pod is extreme. It must precede summing
// the requests of a pod of the API server.
func sound(spec *corev1.PodSpec) error {
	lists := []corev1.ResourceList{spec.Overhead}
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			lists = append(lists, containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	if spec.Resources != nil {
		lists = append(lists, spec.Resources.Requests, spec.Resources.Limits)
	}
	for _, list := range lists {
		for name, quantity := range list {
			if extreme(quantity) {
				return fmt.Errorf("%.80s: a quantity is more than can be counted", name)
			}
		}
	}
	return nil
}
