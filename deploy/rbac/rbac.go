// Package rbac holds the manifests of Muster's rights in a Kubernetes cluster:
// its namespace, the service accounts of the services that talk to an API
// server, and their roles.
//
// It is data only; package install applies it. The YAML files may as well be
// applied by hand, with the name of a queue's namespace put in place of
// NAMESPACE in queue-namespace.yaml.
package rbac

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// Namespace is where the services and their accounts live.
const Namespace = "muster-system"

// Service accounts in Namespace.
const (
	CapacityWatcher = "muster-capacity-watcher"
	Dispatcher      = "muster-dispatcher"
	Intake          = "muster-intake"
)

var (
	//go:embed namespace.yaml
	namespaceYAML string
	//go:embed capacity-watcher.yaml
	capacityWatcherYAML string
	//go:embed dispatcher.yaml
	dispatcherYAML string
	//go:embed wrapped.yaml
	wrappedYAML string
	//go:embed intake.yaml
	intakeYAML string
	//go:embed queue-namespace.yaml
	queueNamespaceYAML string
)

// Documents returns what a cluster needs once, one YAML document each, in an
// order in which they can be applied.
func Documents() [][]byte {
	return split(namespaceYAML, capacityWatcherYAML, dispatcherYAML, wrappedYAML, intakeYAML)
}

// dnsLabel is what Kubernetes takes as the name of a namespace.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ForNamespace returns what each namespace of a queue needs: the right of the
// dispatcher to create and delete Ray objects and wrapped objects and to pin pods
// there, and that of intake to write what becomes of AppWrappers.
func ForNamespace(namespace string) ([][]byte, error) {
	if !dnsLabel.MatchString(namespace) {
		return nil, fmt.Errorf("namespace %q: want lower-case letters, digits and hyphens, at most 63", namespace)
	}
	return split(strings.ReplaceAll(queueNamespaceYAML, "namespace: NAMESPACE", "namespace: "+namespace)), nil
}

func split(files ...string) [][]byte {
	var documents [][]byte
	for _, file := range files {
		for _, document := range strings.Split(file, "\n---\n") {
			documents = append(documents, bytes.TrimSpace([]byte(document)))
		}
	}
	return documents
}
