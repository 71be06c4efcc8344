// Package crds carries KubeRay's custom resource definitions. They cannot be
// embedded from KubeRay's module, so a packed copy is kept here: JSON, because
// decoding 4 MB of YAML would take a second of every start, and compressed.
// NOTICE has their origin; a test compares them with the module.
package crds

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:generate go run ./pack

//go:embed crds.json.gz
var packed []byte

// Load returns the definitions as JSON by name, as "rayclusters.ray.io".
func Load() (map[string]json.RawMessage, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking the definitions of KubeRay: %w", err)
	}
	definitions := make(map[string]json.RawMessage)
	if err := json.NewDecoder(unzipped).Decode(&definitions); err != nil {
		return nil, fmt.Errorf("unpacking the definitions of KubeRay: %w", err)
	}
	return definitions, nil
}
