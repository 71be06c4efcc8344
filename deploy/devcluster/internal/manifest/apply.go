// Package manifest applies manifests, as "kubectl apply --server-side" does.
package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	fieldManager     = "devcluster"
	decodeBuffer     = 4096
	defaultNamespace = metav1.NamespaceDefault
)

// Apply applies the manifests of a file, or of the YAML and JSON files of a
// directory in the order of their names, and returns how many there were.
// Objects without a namespace go to "default".
func Apply(ctx context.Context, config *rest.Config, path string) (int, error) {
	files, err := manifestFiles(path)
	if err != nil {
		return 0, err
	}
	a, err := newApplier(config)
	if err != nil {
		return 0, err
	}
	count := 0
	for _, file := range files {
		n, err := a.applyFile(ctx, file)
		count += n
		if err != nil {
			return count, fmt.Errorf("applying %q: %w", file, err)
		}
	}
	return count, nil
}

func manifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}
	return files, nil
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of manifests: %w", err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	return &applier{client: client, mapper: mapper}, nil
}

func (a *applier) applyFile(ctx context.Context, file string) (int, error) {
	opened, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer opened.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(opened, decodeBuffer)
	count := 0
	for {
		var obj unstructured.Unstructured
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, fmt.Errorf("decoding document %d: %w", count+1, err)
		}
		if len(obj.Object) == 0 {
			continue // Nothing but comments.
		}
		if err := a.applyObject(ctx, &obj); err != nil {
			return count, fmt.Errorf("%s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
		count++
	}
}

func (a *applier) applyObject(ctx context.Context, obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapping(gvk)
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(defaultNamespace)
		}
		client = a.client.Resource(mapping.Resource).Namespace(obj.GetNamespace())
	}
	if obj.GetName() == "" {
		_, err = client.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	_, err = client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// mapping finds the resource of a kind, which may be defined by a manifest
// applied just before.
func (a *applier) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	return mapping, err
}
