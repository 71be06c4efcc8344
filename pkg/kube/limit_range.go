package kube

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// RangeOf returns what a LimitRange demands of pods, as a watch shows it: its defaults are
// filled in from its bounds. It is nil, which is not known, when that is too much to be
// reported, or has an amount that cannot be counted exactly.
func RangeOf(limits *corev1.LimitRange) *workload.LimitRange {
	r := &workload.LimitRange{Name: limits.Name}
	for i := range limits.Spec.Limits {
		from := &limits.Spec.Limits[i]
		if from.Type != corev1.LimitTypeContainer && from.Type != corev1.LimitTypePod {
			continue
		}
		item, known := rangeItem(from)
		if !known {
			return nil
		}
		r.Items = append(r.Items, item)
	}
	if len(r.Items) > workload.MostRangeItems {
		return nil
	}
	return r
}

func rangeItem(from *corev1.LimitRangeItem) (workload.LimitItem, bool) {
	item := workload.LimitItem{Pods: from.Type == corev1.LimitTypePod}
	lists := map[*resource.List]corev1.ResourceList{&item.Min: from.Min, &item.Max: from.Max}
	if !item.Pods { // a pod gets no defaults
		lists[&item.DefaultRequest], lists[&item.Default] = from.DefaultRequest, from.Default
	}
	for into, list := range lists {
		amounts, known := exactly(list)
		if !known {
			return item, false
		}
		*into = amounts
	}
	for name, ratio := range from.MaxLimitRequestRatio {
		if extreme(ratio) || ratio.Sign() < 0 || ratio.CmpInt64(math.MaxInt64/1000) > 0 {
			return item, false
		}
		if item.Ratio == nil {
			item.Ratio = resource.List{}
		}
		item.Ratio[resource.Name(name)] = ratio.MilliValue()
	}
	return item, item.Amounts() <= workload.MostRangeAmounts
}
