package kube

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/resource"
)

// Amounts turns Kubernetes' quantities into exact amounts: CPU into millicores,
// everything else into units, both rounded up. It refuses negative quantities,
// those beyond int64, and parts of what comes in whole pieces, such as devices.
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
	if quantity.Sign() < 0 {
		return 0, fmt.Errorf("%s: %s is negative; want zero or more", name, quantity.String())
	}
	limit, amount := int64(math.MaxInt64), quantity.Value
	if name == resource.CPU {
		limit, amount = math.MaxInt64/1000, quantity.MilliValue
	}
	if vast(quantity) || quantity.CmpInt64(limit) >= 0 {
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

// vast reports whether the quantity is beyond int64 by its exponent alone. To
// compare a number like 1e1000000000 would write out all its digits.
func vast(quantity apiresource.Quantity) bool {
	if quantity.IsZero() {
		return false
	}
	if _, small := quantity.AsInt64(); small {
		return false
	}
	return -quantity.AsDec().Scale() > 18
}
