package state

import (
	"time"

	"muster.dev/muster/pkg/message/event"
)

// disruption is what a running gang lacks. It is not stored: a new term counts since from
// the first observation that it reads. It does not know of a lost pod that was replaced
// before that observation, because an observation does not tell a pod from its replacement.
type disruption struct {
	since      time.Time // not all pods are ready; zero when all are
	lost       time.Time // a pod was seen lost, whether or not it has been replaced
	head       bool      // the head pod was replaced
	headNews   string    // that it was, until the workload's reason has it
	rayCluster string    // the RayCluster of the lost pod
	reported   bool      // the workload's reason has it
	// gone counts the lost pods by pod set; discounted counts those that the owner or
	// Ray's autoscaler scaled down. Either may be reported first.
	gone, discounted map[string]int
}

// discount discounts lost pods that were scaled down: fewer pods of the set are wanted,
// and pending more will terminate.
func (d *disruption) discount(set string, fewer, pending int) {
	if d.gone[set] > 0 {
		d.gone[set] = max(0, d.gone[set]-fewer)
	}
	if d.discounted == nil {
		d.discounted = map[string]int{}
	}
	d.discounted[set] = pending
	for _, gone := range d.gone {
		if gone > 0 {
			return
		}
	}
	if !d.head {
		d.lost = time.Time{}
	}
}

// recordLoss notes the loss of a pod, unless fewer are wanted.
func (d *disruption) recordLoss(pod event.GangPod, now time.Time) {
	if d.discounted[pod.PodSet] > 0 {
		d.discounted[pod.PodSet]--
		return
	}
	if d.gone == nil {
		d.gone = map[string]int{}
	}
	d.gone[pod.PodSet]++
	if d.lost.IsZero() {
		d.lost, d.rayCluster = now, pod.RayCluster
	}
}
