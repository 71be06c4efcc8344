package ray

import (
	"encoding/json"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// declaredRunTime is how long a RayJob holds its places at most: as its
// annotation says, and no longer than KubeRay lets it. KubeRay ends each attempt
// at activeDeadlineSeconds, begins backoffLimit more, and keeps
// the cluster for ttlSecondsAfterFinished. Zero means that it is not known. What
// does not decode is refused elsewhere.
func declaredRunTime(annotated workload.Duration, manifest json.RawMessage) workload.Duration {
	var job struct {
		Spec struct {
			ActiveDeadlineSeconds   *int32 `json:"activeDeadlineSeconds"`
			BackoffLimit            int32  `json:"backoffLimit"`
			TTLSecondsAfterFinished int32  `json:"ttlSecondsAfterFinished"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(manifest, &job); err != nil || job.Spec.ActiveDeadlineSeconds == nil {
		return annotated
	}
	attempts := int64(max(0, job.Spec.BackoffLimit)) + 1
	seconds := int64(max(0, *job.Spec.ActiveDeadlineSeconds))*attempts + int64(max(0, job.Spec.TTLSecondsAfterFinished))
	const most = int64(10 * 365 * 24 * time.Hour / time.Second)
	bound := workload.Duration(time.Duration(min(seconds, most)) * time.Second)
	if annotated > 0 && annotated < bound {
		return annotated
	}
	return bound
}
