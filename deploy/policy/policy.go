// Package policy has the admission policies with which the API server does what would
// otherwise need a webhook server: protect the fields that Muster sets on objects and pods,
// stamp the creator of an AppWrapper, a RayJob or a RayCluster on it, suspend Ray objects
// with a queue, and refuse amounts on which KubeRay would compute for ever. Stamping and
// suspending need Kubernetes 1.36, which serves mutating policies as v1; the rest needs
// 1.30.
//
// It is data only, and not for applying the policies, which package install does.
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
	//go:embed amounts.yaml
	amounts string
)

// Queue labels. Kueue's is left alone where Kueue is installed.
const (
	queueLabel = `"muster.dev/queue-name"`
	kueueLabel = `"kueue.x-k8s.io/queue-name"`
)

// Documents returns the policies, one YAML document each. withKueue means that Kueue is
// installed, so that Muster ignores its queue label. The policies recognize KubeRay's
// operator by its rights.
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

// Templates returns the policies with two placeholders: QUEUE_LABELS for the list of labels
// that suspend an object, and OPERATOR_ACCOUNTS for the accounts of KubeRay operators
// without cluster-wide rights. The policies for Kubernetes 1.30 come first.
func Templates() [][]byte {
	var documents [][]byte
	for _, file := range []string{fixed, amounts, appWrapperUser, hold} {
		for _, document := range strings.Split(file, "\n---\n") {
			documents = append(documents, bytes.TrimSpace([]byte(document)))
		}
	}
	return documents
}
