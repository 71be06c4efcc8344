// Package install creates the objects that Muster's services need in a Kubernetes cluster,
// and makes kubeconfigs of their service accounts for services outside of the cluster.
//
// It is for the local stack and for administrators' tools, not for services, which do not
// have the rights for it.
package install

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/rbac"
)

// fieldManager owns the applied fields in the API server's records.
const fieldManager = "muster-install"

// Options are what is installed.
type Options struct {
	// Clusters are the cluster's names in Muster, each with its Leases; several Musters on
	// one cluster have several names.
	Clusters []string
	// Namespaces are those of queues; missing ones are created. The services may write in
	// them only.
	Namespaces []string
	// Admission is by what the rules of package policy are enforced. Empty is Policies as
	// far as they are served, without the removal of anything.
	Admission Admission
	// Moving are the queues whose objects move to other clusters.
	Moving []string
	// WebhookURL is how the API server reaches the webhooks of an intake outside of the
	// cluster; empty for a Service in the cluster.
	WebhookURL string
}

// Install is InstallWith, with policies as far as the API server serves them: without
// mutating ones intake refuses AppWrappers, because their creators are unknown.
func Install(ctx context.Context, admin *rest.Config, clusters, namespaces []string) error {
	_, err := InstallWith(ctx, admin, Options{Clusters: clusters, Namespaces: namespaces})
	return err
}

// InstallWith creates missing namespaces, and applies Muster's namespace, service accounts,
// roles, definitions and admission rules. It returns by what the rules are enforced. A
// repetition changes nothing.
func InstallWith(ctx context.Context, admin *rest.Config, o Options) (Chosen, error) {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return Chosen{}, fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	own, err := ofNames(o.Clusters, o.Namespaces)
	if err != nil {
		return Chosen{}, err
	}
	for _, document := range append(rbac.Documents(), own...) {
		if err := apply(ctx, client, document); err != nil {
			return Chosen{}, err
		}
	}
	if err := installDefinitions(ctx, client); err != nil {
		return Chosen{}, err
	}
	chosen, err := choose(ctx, client, cmp.Or(o.Admission, Policies))
	if err != nil {
		return Chosen{}, err
	}
	return chosen, installAdmission(ctx, client, chosen, o)
}

// Names applies what belongs to more names of the cluster and to more namespaces, which are
// created if they are missing. The rest is installed already.
func Names(ctx context.Context, admin *rest.Config, clusters, namespaces []string) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	documents, err := ofNames(clusters, namespaces)
	if err != nil {
		return err
	}
	for _, document := range documents {
		if err := apply(ctx, client, document); err != nil {
			return err
		}
	}
	return nil
}

// ofNames are the Leases of the cluster's names, and the namespaces with their role bindings.
func ofNames(clusters, namespaces []string) (documents [][]byte, err error) {
	for _, cluster := range clusters {
		leases, err := rbac.ForCluster(cluster)
		if err != nil {
			return nil, err
		}
		documents = append(documents, leases...)
	}
	for _, namespace := range namespaces {
		bindings, err := rbac.ForNamespace(namespace)
		if err != nil {
			return nil, err
		}
		documents = append(documents, namespaceDocument(namespace))
		documents = append(documents, bindings...)
	}
	return documents, nil
}

func namespaceDocument(name string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: %s\n", name)
}

func apply(ctx context.Context, client dynamic.Interface, document []byte) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &object.Object); err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	// The kinds are known and their plurals regular: no discovery is needed.
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind()))
	encoded, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	force := true
	_, err = client.Resource(resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(),
		types.ApplyPatchType, encoded, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("apply %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
