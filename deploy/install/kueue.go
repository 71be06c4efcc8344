package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/crd"
)

// kueueItself is the definition that only Kueue's own installation has.
const kueueItself = "workloads.kueue.x-k8s.io"

// KueueDefinitions installs the definitions of the kinds with which Kueue configures
// queues, so that the API server stores Kueue's manifests and intake reads them. It changes
// nothing where one of them is of another installation, or where Kueue is. A repetition
// changes nothing.
func KueueDefinitions(ctx context.Context, admin *rest.Config) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	kueue, err := installed(ctx, client, kueueItself)
	if err != nil {
		return err
	}
	if kueue {
		return fmt.Errorf("definition %s: exists, so Kueue is installed here and its definitions stay: leave Kueue's definitions out", kueueItself)
	}
	var names []string
	for _, document := range crd.Kueue() {
		name, err := nameOf(document)
		if err != nil {
			return err
		}
		present, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && present.GetLabels()[managedBy] != manager:
			return fmt.Errorf("definition %s: exists and is not Muster's (it has no label %s=%s): delete it, or leave Kueue's definitions out", name, managedBy, manager)
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("read definition %s: %w", name, err)
		}
		names = append(names, name)
	}
	for _, document := range crd.Kueue() {
		if err := apply(ctx, client, document); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := awaitServed(ctx, client, name); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(document []byte) (string, error) {
	var object metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &object); err != nil {
		return "", fmt.Errorf("read manifest: %w", err)
	}
	return object.Name, nil
}
