// Package policy holds the admission policies that let the API server itself do
// what would else need a webhook server: keep what Muster has set on objects and
// pods, stamp who created an AppWrapper, a RayJob or a RayCluster, and hold those
// that have a queue. It is data only; package install applies it. Stamping and
// holding need Kubernetes 1.36, which serves mutating policies as v1; the rest
// needs 1.30.
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
	//go:embed fixed.yaml
	fixed string
)

// Queue labels. Kueue's is left alone where Kueue is installed.
const (
	queueLabel = `"muster.dev/queue-name"`
	kueueLabel = `"kueue.x-k8s.io/queue-name"`
)

// Documents returns the policies, one YAML document each. withKueue says that
// Kueue is installed and its queue label not Muster's to obey. KubeRay's operator
// is known by its rights.
func Documents(withKueue bool) [][]byte {
	labels := "[" + queueLabel + ", " + kueueLabel + "]"
	if withKueue {
		labels = "[" + queueLabel + "]"
	}
	documents := Templates()
	for i := range documents {
		documents[i] = bytes.ReplaceAll(documents[i], []byte("QUEUE_LABELS"), []byte(labels))
		documents[i] = bytes.ReplaceAll(documents[i], []byte("OPERATOR_ACCOUNTS"), []byte("[]"))
	}
	return documents
}

// Templates returns the policies with QUEUE_LABELS in place of the list of labels
// that hold an object, and OPERATOR_ACCOUNTS in place of that of the accounts of
// KubeRay operators that have no rights in the whole cluster. First come those that
// Kubernetes serves from 1.30 on.
func Templates() [][]byte {
	var documents [][]byte
	for _, file := range []string{fixed, appWrapperUser, hold} {
		for _, document := range strings.Split(file, "\n---\n") {
			documents = append(documents, bytes.TrimSpace([]byte(document)))
		}
	}
	return documents
}
