package kubelet

import (
	"embed"
	"fmt"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	kwokapi "sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
)

//go:embed stages/*.yaml
var ownStages embed.FS

// loadStages returns the life of nodes and pods: KWOK's fast one, save for the
// completion of pods, which is ours.
func loadStages() (map[kwokapi.StageResourceRef][]*kwokapi.Stage, error) {
	sources := map[string]string{
		"node-initialize": nodefast.DefaultNodeInit,
		"node-heartbeat":  heartbeat.DefaultNodeHeartbeatWithLease,
		"pod-ready":       podfast.DefaultPodReady,
		"pod-delete":      podfast.DefaultPodDelete,
	}
	for _, name := range []string{"stages/pod-complete.yaml", "stages/pod-recover.yaml"} {
		data, err := ownStages.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the stage %q: %w", name, err)
		}
		sources[name] = string(data)
	}
	stages := make(map[kwokapi.StageResourceRef][]*kwokapi.Stage)
	for name, source := range sources {
		stage, err := config.UnmarshalWithType[*kwokapi.Stage](source)
		if err != nil {
			return nil, fmt.Errorf("decoding the stage %q: %w", name, err)
		}
		ref := stage.Spec.ResourceRef
		stages[ref] = append(stages[ref], stage)
	}
	return stages, nil
}
