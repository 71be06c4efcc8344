// Package install creates the objects that Muster's services need in a Kubernetes cluster,
// and makes kubeconfigs of their service accounts for services outside of the cluster.
//
// It is for the local stack and for administrators' tools, not for services, which do not
// have the rights for it.
package install

import (
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

// Install creates missing namespaces of the given ones, and applies Muster's namespace,
// service accounts and roles, which allow writing in the given namespaces only. clusters
// are the cluster's names in Muster, each with its Leases; several Musters on one cluster
// have several names. A repetition changes nothing.
func Install(ctx context.Context, admin *rest.Config, clusters, namespaces []string) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	documents := rbac.Documents()
	for _, cluster := range clusters {
		leases, err := rbac.ForCluster(cluster)
		if err != nil {
			return err
		}
		documents = append(documents, leases...)
	}
	for _, namespace := range namespaces {
		bindings, err := rbac.ForNamespace(namespace)
		if err != nil {
			return err
		}
		documents = append(documents, namespaceDocument(namespace))
		documents = append(documents, bindings...)
	}
	for _, document := range documents {
		if err := apply(ctx, client, document); err != nil {
			return err
		}
	}
	return installAPI(ctx, client)
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
