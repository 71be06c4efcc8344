package ray

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// readLife reads what the object's annotations ask of its life.
func readLife(metadata map[string]any) (workload.Life, error) {
	var life workload.Life
	var interval workload.Duration
	annotations, isObject := metadata["annotations"].(map[string]any)
	if !isObject {
		return life, nil // absent; of another type it does not decode
	}
	for key, into := range map[string]*workload.Duration{
		kube.ReadyDeadlineKey: &life.ReadyDeadline, kube.CheckpointGraceKey: &life.CheckpointGrace, kube.MaxRunTimeKey: &life.MaxRunTime,
		kube.RunTimeKey: &life.RunTime, kube.IdleTimeKey: &life.IdleTime, kube.CheckpointIntervalKey: &interval,
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
	life.CheckpointInterval = workload.SecondsOf(interval)
	onLoss, err := readChoice(annotations, kube.OnPodLossKey, workload.OnLosses()...)
	if err == nil && onLoss != "" {
		life.OnPodLoss, err = workload.ParseOnLoss(onLoss)
	}
	if err != nil {
		return life, err
	}
	start, err := readChoice(annotations, kube.StartKey, workload.Starts()...)
	if err == nil && start != "" {
		life.Start, err = workload.ParseStart(start)
	}
	return life, err
}

// Clusters is where the pods of an object may be, and where it prefers them.
type Clusters struct{ May, Prefers workload.ClusterSelector }

// ReadClusters reads which clusters the object's annotations select for its pods. Errors wrap
// ErrInvalid.
func ReadClusters(metadata map[string]any) (Clusters, error) {
	annotations, _ := metadata["annotations"].(map[string]any)
	may, err := readSelector(annotations, kube.ClustersKey)
	if err != nil {
		return Clusters{}, err
	}
	prefers, err := readSelector(annotations, kube.PreferClustersKey)
	return Clusters{may, prefers}, err
}

func readSelector(annotations map[string]any, key string) (workload.ClusterSelector, error) {
	text, err := textOf(annotations, key, annotationPath(key))
	if err != nil {
		return "", err
	}
	selector, err := workload.ParseClusterSelector(text)
	if err != nil {
		return "", refuse(annotationPath(key), "is "+fault.Quote(text), err.Error())
	}
	return selector, nil
}

// readChoice reads an annotation that has one of some values; empty when it is absent.
func readChoice(annotations map[string]any, key string, values ...string) (string, error) {
	text, err := textOf(annotations, key, annotationPath(key))
	if err != nil || text == "" || slices.Contains(values, text) {
		return text, err
	}
	return "", refuse(annotationPath(key), "is "+fault.Quote(text), "want "+strings.Join(values, " or "))
}

func annotationPath(key string) string { return "metadata.annotations[" + key + "]" }
