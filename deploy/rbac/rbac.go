// Package rbac has the manifests of Muster's rights in a Kubernetes cluster: its namespace,
// the service accounts of the services that talk to an API server, and their roles.
//
// It is data only, and not for applying it, which package install does. The YAML files can
// also be applied by hand, with the name of a queue's namespace for NAMESPACE in
// queue-namespace.yaml, and the cluster's name in Muster for CLUSTER in cluster.yaml.
package rbac

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// Namespace is the namespace of the services and their accounts.
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
	//go:embed cluster.yaml
	clusterYAML string
	//go:embed webhook.yaml
	webhookYAML string
	//go:embed webhook-service.yaml
	webhookServiceYAML string
)

// Documents returns the objects that a cluster needs once, one YAML document each, in
// order of application.
func Documents() [][]byte {
	return split(namespaceYAML, capacityWatcherYAML, dispatcherYAML, wrappedYAML, intakeYAML)
}

// Names of what intake's webhooks have in a cluster.
const (
	WebhookSecret        = "muster-intake-webhook" // in Namespace
	WebhookService       = "muster-intake"         // in Namespace
	WebhookConfiguration = "muster"                // of either kind
)

// ForWebhooks returns the Secret and the rights of intake's webhooks.
func ForWebhooks() [][]byte { return split(webhookYAML) }

// ServiceOfWebhooks returns the Service of intake's webhooks.
func ServiceOfWebhooks() []byte { return split(webhookServiceYAML)[0] }

// dnsLabel matches the names of namespaces.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ForCluster returns the Leases of a cluster's services, under the cluster's name in
// Muster, and the rights to hold them. Several Musters on one Kubernetes cluster have
// several names.
func ForCluster(cluster string) ([][]byte, error) {
	if !dnsLabel.MatchString(cluster) {
		return nil, fmt.Errorf("cluster %q: want lower-case letters, digits and hyphens, at most 63", cluster)
	}
	return split(strings.ReplaceAll(clusterYAML, "CLUSTER", cluster)), nil
}

// ForNamespace returns the role bindings of a queue's namespace: for the dispatcher, to
// create and delete Ray objects and wrapped objects and to pin pods; for intake, to write
// the status of AppWrappers.
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
