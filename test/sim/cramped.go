package sim

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"muster.dev/muster/pkg/spec/workload"
	dispatcher "muster.dev/muster/services/dispatcher/simhooks"
)

// strictQueue is the queue whose gangs start whole where those of the others start early.
const strictQueue = "strict"

// drawCramped draws ResourceQuotas with room for a few pods more.
func drawCramped(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classEarly)+100))
	for range 3 + random.IntN(6) {
		timed = append(timed, TimedFault{
			At: time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond), Fault: Cramped,
			Pick: random.Uint64() >> 12, For: time.Second + time.Duration(random.Int64N(int64(time.Minute))).Truncate(time.Millisecond),
		})
	}
	return timed
}

// podQuota is a ResourceQuota for the pods of a namespace.
type podQuota struct {
	name string
	most int
}

// cramp sets a ResourceQuota for a while.
func (c *cluster) cramp(f TimedFault) string {
	if c.quota != nil {
		return ""
	}
	quota := &podQuota{"cramped", len(c.podsIn(gangsNamespace)) + int(f.Pick%5)}
	c.quota = quota
	c.w.after(f.For, func() { c.quota = nil })
	return f.For.String()
}

// gangsNamespace is that of all queues.
const gangsNamespace = "team"

func (c *cluster) podsIn(namespace string) []*pod {
	return c.podsOf(func(p *pod) bool { return p.namespace == namespace })
}

// podsLeft is how many more pods the API server takes in a namespace, at most the given.
func (c *cluster) podsLeft(namespace string, most int) int {
	if c.quota == nil || namespace != gangsNamespace {
		return most
	}
	return max(0, min(most, c.quota.most-len(c.podsIn(namespace))))
}

// quotas are those that the API server has for the namespace.
func (c *cluster) quotas(namespace string, like []dispatcher.Pod) []dispatcher.Quota {
	if c.quota == nil || namespace != gangsNamespace {
		return nil
	}
	pods := func(n int) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: *apiresource.NewQuantity(int64(n), apiresource.DecimalSI)}
	}
	quota := dispatcher.Quota{Name: c.quota.name, Left: pods(c.quota.most - len(c.podsIn(namespace))), Charged: map[string]corev1.ResourceList{}}
	for _, p := range like {
		quota.Charged[p.PodSet] = pods(1)
	}
	return []dispatcher.Quota{quota}
}

// startOf is the rule of a queue.
func (w *World) startOf(queue string) workload.Start {
	if queue != strictQueue && w.is(classEarly) {
		return workload.StartEarly
	}
	return workload.StartWhole
}

// startsWhole reports whether no pod of the workload may start before all exist.
func (w *World) startsWhole(id workload.ID) bool {
	if r := w.disk.live[id]; r != nil { // it may have been moved
		return w.startOf(r.Queue) == workload.StartWhole
	}
	each := w.submits.by[id]
	return each != nil && w.startOf(each.queue) == workload.StartWhole
}

// askedForRoom looks at the moment at which the quotas are read for a gang: it may start early if
// they have room for the pods that were never made.
func (c *checker) askedForRoom(id workload.ID, attempt int) {
	for _, o := range c.w.cluster.objects {
		if o.workload != id || o.attempt != attempt {
			continue
		}
		missing := max(0, min(o.atStart, o.size())-o.made)
		if c.w.cluster.podsLeft(o.namespace, missing) == missing {
			c.roomy[attemptKey{id, attempt}] = true
		} else {
			c.made[madeCramped]++
		}
	}
}

// starts looks at a pod that was just bound: all of its gang exist, or each set has had a
// pod and the quotas had room for the others, unless the gang is to start whole.
func (c *checker) starts(p *pod) {
	key, name := attemptKey{p.workload, p.attempt}, c.w.submits.nameOf(p.workload)
	switch {
	case c.whole[key]:
	case c.w.startsWhole(p.workload):
		c.w.breach("G1", "a pod of %s attempt %d starts before all of its pods exist", name, p.attempt)
	case !c.proven[key]:
		c.w.breach("G1", "a pod of %s attempt %d starts before each of its pod sets has a pod", name, p.attempt)
	case !c.roomy[key]:
		c.w.breach("G1", "a pod of %s attempt %d starts, and the quota of its namespace has no room for the others", name, p.attempt)
	default:
		c.made[madeEarly]++
	}
}
