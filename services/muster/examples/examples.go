// Package examples holds manifests that work as they are, for the demo, the
// documentation and tests. It is not for manifests that are meant to be refused.
package examples

import (
	"embed"
	"fmt"
)

// The files.
const (
	Glue             = "raycluster-glue.yaml"
	TwoGPUsOnOneNode = "raycluster-two-gpus-on-one-node.yaml"
	HelloJob         = "rayjob-hello.yaml"
	TextClassifier   = "rayjob-text-classifier.yaml"
	Queues           = "queues.yaml"
	KueueResources   = "kueue-resources.yaml"
)

//go:embed *.yaml
var files embed.FS

// Read returns a file by its name.
func Read(name string) ([]byte, error) {
	content, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read example: %w", err)
	}
	return content, nil
}
