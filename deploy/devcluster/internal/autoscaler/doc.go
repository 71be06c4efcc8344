// Package autoscaler is a stand-in for a node autoscaler, and is called that: it plays
// node pools and the API ProvisioningRequest (autoscaling.x-k8s.io) towards those who ask
// for nodes. Cluster Autoscaler itself does not run here.
//
// It adds the nodes of a request all at once or not at all, after the delay of the pool,
// and removes nodes that have been idle. It plays three classes as their providers
// describe them: queued-provisioning.gke.io, best-effort-atomic-scale-up and check-capacity.
// A pool may add nodes for pending pods, too. Pools can be changed while it runs.
package autoscaler

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed definition.yaml
var definition []byte

// Definition returns the definition of ProvisioningRequest as JSON by its name.
func Definition() (map[string]json.RawMessage, error) {
	encoded, err := yaml.YAMLToJSON(definition)
	if err != nil {
		return nil, fmt.Errorf("decoding the definition of ProvisioningRequest: %w", err)
	}
	return map[string]json.RawMessage{"provisioningrequests.autoscaling.x-k8s.io": encoded}, nil
}
