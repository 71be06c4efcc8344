package ray_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

const withAnnotations = `{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c", "annotations": {%s}},
	"spec": {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray-head", "image": "ray"}]}}}}}`

func TestAnnotationsAskForALife(t *testing.T) {
	t.Parallel()
	object, err := ray.Read(fmt.Appendf(nil, withAnnotations, `"muster.dev/ready-deadline": "2m", "muster.dev/on-pod-loss": "evict", "muster.dev/start": "whole",
		"muster.dev/checkpoint-grace": "30s", "muster.dev/checkpoint-interval": "20m", "muster.dev/max-run-time": "8h", "muster.dev/other": "kept"`))
	want := workload.Life{
		ReadyDeadline: workload.Duration(2 * time.Minute), OnPodLoss: workload.EvictOnLoss, Start: workload.StartWhole,
		CheckpointGrace: workload.Duration(30 * time.Second), CheckpointInterval: 1200, MaxRunTime: workload.Duration(8 * time.Hour),
	}
	if err != nil || object.Life != want {
		t.Errorf("read %+v, %v; want %+v", object.Life, err, want)
	}
	for annotation, words := range map[string]string{
		`"muster.dev/ready-deadline": "soon"`: "muster.dev/ready-deadline",
		`"muster.dev/ready-deadline": "-1s"`:  "muster.dev/ready-deadline",
		`"muster.dev/max-run-time": 5`:        "muster.dev/max-run-time",
		`"muster.dev/checkpoint-grace": "5"`:  "90s, 10m or 2h",
		`"muster.dev/on-pod-loss": "cry"`:     "want heal or evict",
		`"muster.dev/start": "late"`:          "want early or whole",
	} {
		t.Run(annotation, func(t *testing.T) {
			if _, err := ray.Read(fmt.Appendf(nil, withAnnotations, annotation)); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", annotation, err)
			}
		})
	}
}
