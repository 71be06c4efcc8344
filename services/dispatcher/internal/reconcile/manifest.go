package reconcile

import (
	"encoding/json"
	"fmt"
)

// metadata is what this package reads of the metadata of a manifest.
type metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

// manifestMetadata returns the metadata of a manifest; nothing of one that cannot be read, which fails
// when the object is created.
func manifestMetadata(manifest json.RawMessage) metadata {
	var object struct {
		Metadata metadata `json:"metadata"`
	}
	if json.Unmarshal(manifest, &object) != nil {
		return metadata{}
	}
	return object.Metadata
}

// treeOf returns a manifest as JSON values.
func treeOf(manifest json.RawMessage) (tree any, err error) {
	if err := json.Unmarshal(manifest, &tree); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	return tree, nil
}

// runtimeClassesIn are the names of the runtime classes in a manifest.
func runtimeClassesIn(manifest json.RawMessage) (names []string) {
	tree, err := treeOf(manifest)
	if err != nil {
		return nil // reading it fails, too
	}
	var look func(any)
	look = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if name, is := value["runtimeClassName"].(string); is {
				names = append(names, name)
			}
			for _, below := range value {
				look(below)
			}
		case []any:
			for _, below := range value {
				look(below)
			}
		}
	}
	look(tree)
	return names
}
