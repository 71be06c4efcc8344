package sim

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// size is how many pods KubeRay shall keep of an object.
func (o *object) size() (pods int) {
	for _, set := range o.sets {
		pods += set.Count
	}
	return pods
}

// resize is an owner, or Ray's autoscaler, that changes the replicas of a worker
// group. KubeRay makes and deletes pods accordingly.
func (c *cluster) resize(f TimedFault) string {
	keys := slices.Sorted(maps.Keys(c.objects))
	if len(keys) == 0 {
		return ""
	}
	key := keys[f.Pick%uint64(len(keys))]
	o := c.objects[key]
	sets := slices.Clone(o.sets)
	for i := range sets {
		if sets[i].Role != workload.RoleWorker {
			continue
		}
		size := int(f.Pick / 64 % 6)
		if size == sets[i].Count {
			size++
		}
		what := fmt.Sprintf("%s from %d to %d workers", o.name, sets[i].Count, size)
		sets[i].Count = size
		o.sets = sets
		c.w.check.resized(o)
		c.changed("object " + key)
		return what
	}
	return ""
}

// dropPods is KubeRay where a worker group has become smaller.
func (c *cluster) dropPods(o *object, set workload.PodSet) {
	there := c.podsOf(func(p *pod) bool { return p.owner == o.uid && p.set == set.Name && !p.deleting })
	for len(there) > set.Count {
		i := c.w.random.IntN(len(there))
		c.deletePod(there[i], false)
		there = slices.Delete(there, i, i+1)
	}
}

// resized notes a size that a gang was given.
func (c *checker) resized(o *object) {
	key := attemptKey{o.workload, o.attempt}
	if c.sizes[key] == nil {
		c.sizes[key] = map[int64]bool{}
	}
	c.sizes[key][int64(o.size())] = true
	c.grown(o) // one that is made smaller may be whole with the pods that it has
}
