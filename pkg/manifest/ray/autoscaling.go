package ray

import (
	"fmt"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// Sizes at which an autoscaled cluster is admitted.
const (
	// AtMaximum keeps a place for each pod of maxReplicas. It is the default.
	AtMaximum = "maximum"
	// AtMinimum keeps places for minReplicas; what the autoscaler asks for beyond is
	// admitted by itself.
	AtMinimum = "minimum"
)

// size is how many pods a group has, hosts of a replica counted.
type size struct {
	created  int // by KubeRay, of the manifest as it is
	admitted int // by Muster
	later    int // of the admitted, those that the autoscaler creates
}

// sizeOf counts the pods of a group, whose numbers are within bounds.
func (c *clusterSpec) sizeOf(g *rayv1.WorkerGroupSpec) size {
	hosts := int(g.NumOfHosts)
	created := int(replicas(g)) * hosts
	switch {
	case !autoscaled(c.spec):
		return size{created: created, admitted: created}
	case c.annotations[kube.AutoscalingKey] == AtMinimum:
		return size{created: created, admitted: int(*g.MinReplicas) * hosts}
	}
	most := int(*g.MaxReplicas) * hosts
	return size{created: created, admitted: most, later: most - created}
}

// checkSize bounds the gang as created, which KubeRay would choke on, and as
// admitted.
func (c *clusterSpec) checkSize() error {
	created, admitted := int64(1), int64(1)
	for i := range c.spec.WorkerGroupSpecs {
		g := &c.spec.WorkerGroupSpecs[i]
		pods := int64(replicas(g)) * int64(g.NumOfHosts)
		if created += pods; created > MaxPods {
			return refuse(c.groupPath(i)+".replicas", fmt.Sprintf("makes %d pods of the group and at least %d of the gang", pods, created),
				fmt.Sprintf("a gang has at most %d pods", MaxPods))
		}
		if !autoscaled(c.spec) || c.annotations[kube.AutoscalingKey] == AtMinimum {
			continue
		}
		most := int64(*g.MaxReplicas) * int64(g.NumOfHosts)
		if admitted += most; admitted > MaxPods {
			c.verdict.refuse(c.groupPath(i)+".maxReplicas", fmt.Sprintf("lets the group grow to %d pods", most),
				fmt.Sprintf("an autoscaled cluster is admitted at its maximum, of at most %d pods: set maxReplicas, or annotate it %s: %s",
					MaxPods, kube.AutoscalingKey, AtMinimum))
		}
	}
	return nil
}

func (c *clusterSpec) checkAutoscaling() error {
	switch size := c.annotations[kube.AutoscalingKey]; size {
	case "", AtMaximum, AtMinimum:
		return nil
	default:
		return refuse("metadata.annotations["+kube.AutoscalingKey+"]", "is "+fault.Quote(size), "want "+AtMaximum+" or "+AtMinimum)
	}
}
