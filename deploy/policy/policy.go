// Package policy holds the admission policies that let the API server itself do
// what would else need a webhook server: stamp who created an AppWrapper, and
// hold RayJobs and RayClusters that have a queue. It is data only; package install
// applies it. They need Kubernetes 1.36, which serves mutating policies as v1.
package policy

import (
	"bytes"
	_ "embed"
	"strings"
)

var (
	//go:embed appwrapper-user.yaml
	appWrapperUser string
	//go:embed hold.yaml
	hold string
)

// Queue labels. Kueue's is left alone where Kueue is installed.
const (
	queueLabel = `"muster.dev/queue-name"`
	kueueLabel = `"kueue.x-k8s.io/queue-name"`
)

// Documents returns the policies, one YAML document each. withKueue says that
// Kueue is installed and its queue label not Muster's to obey.
func Documents(withKueue bool) [][]byte {
	labels := "[" + queueLabel + ", " + kueueLabel + "]"
	if withKueue {
		labels = "[" + queueLabel + "]"
	}
	documents := Templates()
	for i := range documents {
		documents[i] = bytes.ReplaceAll(documents[i], []byte("QUEUE_LABELS"), []byte(labels))
	}
	return documents
}

// Templates returns the policies with QUEUE_LABELS in place of the list of labels
// that hold an object.
func Templates() [][]byte {
	var documents [][]byte
	for _, file := range []string{appWrapperUser, hold} {
		for _, document := range strings.Split(file, "\n---\n") {
			documents = append(documents, bytes.TrimSpace([]byte(document)))
		}
	}
	return documents
}
