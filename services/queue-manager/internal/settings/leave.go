package settings

import (
	"fmt"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// Orders about clusters are given by what a client has read before. Another order may have come
// meanwhile, so what has a cluster leave is kept here: only having the cluster join ends it.

// keepsLeaving refuses an object in place of the order by which a cluster leaves, unless it
// orders as much.
func keepsLeaving(present Applied, object kueue.Object) error {
	was, is := leaving(present.Object), leaving(object)
	switch {
	case was == nil || is != nil && (is.Forced || !was.Forced):
		return nil
	case is != nil:
		return fmt.Errorf("%s: cluster %s has left by force; `muster cluster join %s` has it back", object.Key, object.Name, object.Name)
	}
	return hasLeft(object.Key)
}

// mayEndLeaving refuses to delete the order by which a cluster leaves, unless the cluster joins
// with the same change. A cluster that the queues file describes joins by that alone.
func (f File) mayEndLeaving(present Applied, applied map[kueue.Key]bool) error {
	described := kueue.Key{Kind: kueue.Cluster, Name: present.Name}
	if leaving(present.Object) == nil || applied[described] || kueue.Keys(f.Policy)[described] {
		return nil
	}
	return hasLeft(present.Key)
}

// leaving returns the order by which a cluster leaves; nil for any other object.
func leaving(object kueue.Object) *quota.ClusterCordon {
	if object.Kind != kueue.ClusterCordon || len(object.Policy.ClusterCordons) == 0 || !object.Policy.ClusterCordons[0].Left {
		return nil
	}
	return &object.Policy.ClusterCordons[0]
}

func hasLeft(order kueue.Key) error {
	return fmt.Errorf("%s: cluster %s has left; `muster cluster join %s` has it back", order, order.Name, order.Name)
}
