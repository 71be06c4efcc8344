// Package install puts into a Kubernetes cluster what Muster's services need
// there, and makes kubeconfigs of their service accounts for services that run
// outside of the cluster.
//
// It is for the local stack and for administrators' tools; no service imports
// it, for no service has the rights that it takes.
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

// Install creates the given namespaces where they are missing, and applies
// Muster's own namespace, service accounts and roles, with the right to write
// in the given namespaces only. Doing it again changes nothing.
func Install(ctx context.Context, admin *rest.Config, namespaces []string) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	documents := rbac.Documents()
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
	return installDoors(ctx, client)
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
