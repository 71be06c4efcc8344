package ray

import (
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// readLife reads what the object's annotations ask of its life.
func readLife(metadata map[string]any) (workload.Life, error) {
	var life workload.Life
	annotations, isObject := metadata["annotations"].(map[string]any)
	if !isObject {
		return life, nil // absent; of another type it does not decode
	}
	for key, into := range map[string]*workload.Duration{
		kube.ReadyDeadlineKey: &life.ReadyDeadline, kube.CheckpointGraceKey: &life.CheckpointGrace, kube.MaxRunTimeKey: &life.MaxRunTime,
		kube.RunTimeKey: &life.RunTime, kube.IdleTimeKey: &life.IdleTime,
	} {
		text, err := textOf(annotations, key, annotationPath(key))
		if err != nil {
			return life, err
		}
		if text == "" {
			continue
		}
		if *into, err = workload.ParseDuration(text); err != nil {
			return life, refuse(annotationPath(key), "is "+fault.Quote(text), "want a number and a unit, such as 90s, 10m or 2h, of at most ten years")
		}
	}
	var err error
	if life.OnPodLoss, err = textOf(annotations, kube.OnPodLossKey, annotationPath(kube.OnPodLossKey)); err != nil {
		return life, err
	}
	switch life.OnPodLoss {
	case "", workload.HealOnLoss, workload.EvictOnLoss:
		return life, nil
	}
	return life, refuse(annotationPath(kube.OnPodLossKey), "is "+fault.Quote(life.OnPodLoss),
		"want "+strings.Join([]string{workload.HealOnLoss, workload.EvictOnLoss}, " or "))
}

func annotationPath(key string) string { return "metadata.annotations[" + key + "]" }
