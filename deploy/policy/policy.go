// Package policy has the admission policies with which the API server does what would
// otherwise need a webhook server: protect the fields that Muster sets on objects and pods,
// stamp the creator of an AppWrapper, a RayJob or a RayCluster on it, suspend Ray objects
// with a queue, and refuse amounts on which KubeRay would compute for ever. Stamping and
// suspending need Kubernetes 1.36, which serves mutating policies as v1; the rest needs
// 1.30.
//
// Where the API server serves no such policies, intake evaluates the same documents as
// webhooks, whose configurations are made from them here.
//
// It is data only, and not for applying the policies, which package install does.
package policy

import (
	"bytes"
	"cmp"
	_ "embed"
	"strconv"
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

// dispatcher is the account in the policies that stands for Muster's.
const dispatcher = "system:serviceaccount:muster-system:muster-dispatcher"

// Settings are what differs between installations. The zero value obeys Muster's queue label
// alone, and recognizes KubeRay's operator by its rights and the dispatcher by its usual
// account.
type Settings struct {
	// KueueLabel obeys Kueue's queue label too; not where Kueue is installed.
	KueueLabel bool
	// Operators are accounts of KubeRay operators without cluster-wide rights.
	Operators []string
	// Dispatcher is the account of the dispatcher.
	Dispatcher string
	// Moving are the queues whose objects move (homeObjects in the queues file).
	Moving []string
	// Unset leaves the placeholders of Templates, for a chart that sets them.
	Unset bool
}

// Documents returns the policies, one YAML document each.
func (s Settings) Documents() [][]byte {
	documents := Templates()
	for i := range documents {
		documents[i] = s.complete(documents[i])
	}
	return documents
}

// complete puts the settings for the placeholders.
func (s Settings) complete(document []byte) []byte {
	if s.Unset {
		return document
	}
	labels := "[" + queueLabel + "]"
	if s.KueueLabel {
		labels = "[" + queueLabel + ", " + kueueLabel + "]"
	}
	document = bytes.ReplaceAll(document, []byte("QUEUE_LABELS"), []byte(labels))
	document = bytes.ReplaceAll(document, []byte("OPERATOR_ACCOUNTS"), listOf(s.Operators))
	document = bytes.ReplaceAll(document, []byte("MOVING_QUEUES"), listOf(s.Moving))
	return bytes.ReplaceAll(document, []byte(dispatcher), []byte(cmp.Or(s.Dispatcher, dispatcher)))
}

// listOf is a list of texts in an expression.
func listOf(texts []string) []byte {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return []byte("[" + strings.Join(quoted, ", ") + "]")
}

// Documents returns the policies for Muster's usual accounts. withKueue means that Kueue is
// installed, so that Muster ignores its queue label.
func Documents(withKueue bool) [][]byte { return Settings{KueueLabel: !withKueue}.Documents() }

// Templates returns the policies with three placeholders: QUEUE_LABELS for the list of labels
// that suspend an object, OPERATOR_ACCOUNTS for the accounts of KubeRay operators without
// cluster-wide rights, and MOVING_QUEUES for the queues whose objects move. The policies for Kubernetes 1.30 come first.
func Templates() [][]byte {
	var documents [][]byte
	for _, file := range []string{fixed, amounts, appWrapperUser, hold} {
		for _, document := range strings.Split(file, "\n---\n") {
			documents = append(documents, bytes.TrimSpace([]byte(document)))
		}
	}
	return documents
}
