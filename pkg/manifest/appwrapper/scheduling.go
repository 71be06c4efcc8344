package appwrapper

import (
	"fmt"
	"math"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// defaultGrace is MCAD's requeuing.timeInSeconds.
const defaultGrace = 300

// scheduling reads spec.schedulingSpec.
func (r *reader) scheduling(spec map[string]any) error {
	const where = "spec.schedulingSpec"
	scheduling, isMap := spec["schedulingSpec"].(map[string]any)
	if !isMap {
		return nil
	}
	r.idle(where, scheduling, "minAvailable", "requeuing", "dispatchDuration")
	minAvailable, err := r.number(scheduling, where, "minAvailable", 0, 10_000)
	if err != nil {
		return err
	}
	if err := r.requeuing(scheduling, int(minAvailable)); err != nil {
		return err
	}
	duration, isMap := scheduling["dispatchDuration"].(map[string]any)
	if !isMap {
		return nil
	}
	r.idle(where+".dispatchDuration", duration, "limit")
	limit, err := r.number(duration, where+".dispatchDuration", "limit", 0, math.MaxInt32)
	if limit > 0 && err == nil {
		r.Life.MaxRunTime = workload.Duration(time.Duration(limit) * time.Second)
	}
	return err
}

// requeuing reads how long the pods may take, and what becomes of a gang of
// which they do not come.
func (r *reader) requeuing(scheduling map[string]any, minAvailable int) error {
	const where = "spec.schedulingSpec.requeuing"
	pods := 0
	for _, set := range r.PodSets {
		if set.Role != roleDeclared {
			pods += set.Count
		}
	}
	requeuing, given := scheduling["requeuing"].(map[string]any)
	r.idle(where, requeuing, "timeInSeconds", "maxNumRequeuings")
	grace, err := r.number(requeuing, where, "timeInSeconds", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	most, err := r.number(requeuing, where, "maxNumRequeuings", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	switch {
	case minAvailable == 0 && given:
		r.warn("%s: does nothing without minAvailable; how long a gang may take to start is the queue's ready deadline", where)
		return nil
	case minAvailable == 0:
		return nil
	case minAvailable > pods:
		return refuse("spec.schedulingSpec.minAvailable", fmt.Sprintf("is %d, but the wrapped objects make %d pods", minAvailable, pods),
			"lower it: the gang would never be complete")
	case minAvailable < pods:
		r.warn("spec.schedulingSpec.minAvailable: is %d, but all %d pods are needed: Muster starts gangs whole", minAvailable, pods)
	}
	if grace == 0 {
		grace = defaultGrace
	}
	r.Life.ReadyDeadline = workload.Duration(time.Duration(grace) * time.Second)
	if most > 0 { // 0 is MCAD's word for no limit; then the queue's counts
		retries := int(most)
		r.Life.Tolerance = &workload.Tolerance{Retries: &retries}
	}
	return nil
}
