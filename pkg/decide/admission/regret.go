package admission

import (
	"cmp"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// regret is what the eviction of gangs loses, in seconds of accelerators, then of pods:
// the work since the admission, and what the last start took. Nothing that a tenant
// reports is in it, so a false report gains nothing.
type regret struct{ accelerators, pods int64 }

// mostRegret bounds one gang's, so that sums can be counted.
const mostRegret = 1 << 44

// regretOf returns what the eviction of a gang loses now. It is never nothing: each gang
// starts again.
func (d *decision) regretOf(g *Started) regret {
	again := max(0, d.now.Sub(g.Admitted)) + max(0, g.Progress.Startup)
	bounded := func(of int64) int64 { return min(mostRegret, seconds(again, of)) }
	r := regret{pods: max(1, bounded(int64(g.Workload.Pods())))}
	if units, accelerators := g.units(); accelerators {
		r.accelerators = bounded(units)
	}
	return r
}

func (r regret) plus(other regret) regret {
	return regret{r.accelerators + other.accelerators, r.pods + other.pods}
}

func (r regret) compare(other regret) int {
	return cmp.Or(cmp.Compare(r.accelerators, other.accelerators), cmp.Compare(r.pods, other.pods))
}

// units returns how many accelerators the gang has, as the device that it has most of; of
// a gang without accelerators, its pods.
func (g *Started) units() (count int64, accelerators bool) {
	for name, amount := range g.Workload.Requests() {
		if resource.Whole(name) && name != resource.Pods {
			count = max(count, amount)
		}
	}
	if count > 0 {
		return count, true
	}
	return int64(g.Workload.Pods()), false
}

// seconds multiplies whole seconds, within what can be counted.
func seconds(of time.Duration, units int64) int64 {
	whole := int64(max(0, of) / time.Second)
	return resource.List{"s": whole}.Times(units)["s"]
}
