package ray

import (
	"fmt"
	"strconv"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// readRange reads with how many replicas a worker group may start at least. The annotation
// is on the pod template of the group, as those of topology. A group with an autoscaler
// has its range in minReplicas and maxReplicas instead.
func readRange(members []member, i int) error {
	m := &members[i]
	value := m.annotations[kube.MinReplicasKey]
	if value == "" {
		return nil
	}
	where := m.path + ".metadata.annotations[" + kube.MinReplicasKey + "]"
	least, err := strconv.Atoi(value)
	hosts := max(1, m.hosts)
	switch {
	case m.set.Role != workload.RoleWorker:
		return refuse(where, "is set on the "+m.set.Role, "set it on the pod template of a worker group")
	case m.autoscaled:
		return refuse(where, "is set, and enableInTreeAutoscaling is true", "annotate the object "+kube.AutoscalingKey+": "+AtMinimum+" instead")
	case err != nil || least < 1 || least > m.set.Count/hosts:
		return refuse(where, "is "+fault.Quote(value), fmt.Sprintf("want a whole number from 1 to %d, the replicas of the group", m.set.Count/hosts))
	}
	step := hosts
	if t := m.set.Topology; t != nil && t.SliceSize > step {
		step = t.SliceSize
	}
	if pods := least * hosts; pods%step != 0 {
		return refuse(where, fmt.Sprintf("is %s, which is %d pods", fault.Quote(value), pods), fmt.Sprintf("want replicas in whole slices of %d pods", step))
	}
	if least*hosts < m.set.Count {
		m.set.MinCount = least * hosts
		if step > 1 {
			m.set.Step = step
		}
	}
	return nil
}
