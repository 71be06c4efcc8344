package recorder

import corev1 "k8s.io/api/core/v1"

// amounts of resources, in thousandths.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	a := amounts{}
	for name, quantity := range list {
		a[name] = quantity.MilliValue()
	}
	return a
}

func (a amounts) add(b amounts, sign int64) {
	for name, amount := range b {
		a[name] += sign * amount
	}
}

// requestsOf is what the scheduler counts: the sum of the containers or the
// largest of the init containers, whichever is more, and a slot.
func requestsOf(p *corev1.Pod) amounts {
	sum := amounts{}
	for _, c := range p.Spec.Containers {
		sum.add(amountsOf(c.Resources.Requests), 1)
	}
	for _, c := range p.Spec.InitContainers {
		for name, amount := range amountsOf(c.Resources.Requests) {
			sum[name] = max(sum[name], amount)
		}
	}
	sum.add(amountsOf(p.Spec.Overhead), 1)
	sum[corev1.ResourcePods] = 1000
	return sum
}
