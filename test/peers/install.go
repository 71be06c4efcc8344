package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/crd"
)

const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert" //nolint:gosec // a name
)

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	hooks       = map[string]schema.GroupVersionResource{
		"MutatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	}
	// hooked are the resources whose webhooks are installed, beside those of the kind.
	hooked = []string{"workloads", "workloads/status", "clusterqueues", "localqueues", "resourceflavors", "cohorts"}
)

// installKueue creates what Kueue's kustomization has: definitions with their conversion,
// webhooks, and the service that leads to them, here by name to this machine.
func (s *site) installKueue(ctx context.Context, port int) error {
	for _, name := range []string{namespace, kueueNamespace} {
		if err := s.create(ctx, namespaces, "", fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name)); err != nil {
			return err
		}
	}
	if err := s.create(ctx, services, kueueNamespace, fmt.Sprintf(
		"apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: ExternalName, externalName: localhost}\n", kueueService)); err != nil {
		return err
	}
	if err := s.create(ctx, secrets, kueueNamespace, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\n", kueueSecret)); err != nil {
		return err
	}
	if s.kind.wraps {
		if err := s.installAppWrappers(ctx); err != nil {
			return err
		}
	}
	root, err := sources(ctx)
	if err != nil {
		return err
	}
	if err := s.installDefinitions(ctx, root, port); err != nil {
		return err
	}
	return s.installHooks(ctx, root, port)
}

// converted are the definitions that Kueue's kustomization gives a conversion.
var converted = []string{
	"localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io", "workloads.kueue.x-k8s.io", "multikueueclusters.kueue.x-k8s.io",
}

func (s *site) installDefinitions(ctx context.Context, root string, port int) error {
	files, err := filepath.Glob(filepath.Join(root, "config/components/crd/bases/*.yaml"))
	if err != nil {
		return fmt.Errorf("find the definitions of Kueue: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("find the definitions of Kueue: there are none in %s", root)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a definition of Kueue: %w", err)
		}
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if slices.Contains(converted, object.GetName()) {
			if err := unstructured.SetNestedMap(object.Object, map[string]any{
				"strategy": "Webhook",
				"webhook": map[string]any{
					"conversionReviewVersions": []any{"v1"},
					"clientConfig":             map[string]any{"service": service("/convert", port)},
				},
			}, "spec", "conversion"); err != nil {
				return err
			}
		}
		if err := s.createObject(ctx, definitions, "", &object); err != nil {
			return err
		}
	}
	return nil
}

// installAppWrappers creates the definitions of AppWrappers, which Kueue has to find when it starts.
func (s *site) installAppWrappers(ctx context.Context) error {
	for _, document := range crd.Documents() {
		if err := s.create(ctx, definitions, "", string(document)); err != nil {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := s.dynamic.Resource(appWrappers).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil // asked again until they are served
	})
}

func service(path string, port int) map[string]any {
	return map[string]any{"namespace": kueueNamespace, "name": kueueService, "path": path, "port": int64(port)}
}

func (s *site) installHooks(ctx context.Context, root string, port int) error {
	content, err := os.ReadFile(filepath.Join(root, "config/components/webhook/manifests.yaml"))
	if err != nil {
		return fmt.Errorf("read Kueue's webhooks: %w", err)
	}
	for _, document := range strings.Split(string(content), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return fmt.Errorf("read Kueue's webhooks: %w", err)
		}
		resource, known := hooks[object.GetKind()]
		if !known {
			continue
		}
		object.SetName("kueue-" + object.GetName())
		all, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("read Kueue's webhooks: %w", err)
		}
		kept := []any{}
		for _, hook := range all {
			hook := hook.(map[string]any)
			if !s.needs(hook) {
				continue
			}
			path, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
			if err != nil {
				return fmt.Errorf("read Kueue's webhooks: %w", err)
			}
			hook = maps.Clone(hook)
			hook["clientConfig"] = map[string]any{"service": service(path, port)}
			kept = append(kept, hook)
		}
		if err := unstructured.SetNestedSlice(object.Object, kept, "webhooks"); err != nil {
			return err
		}
		if err := s.createObject(ctx, resource, "", &object); err != nil {
			return err
		}
	}
	return nil
}

// needs reports whether a webhook is for one of the resources here.
func (s *site) needs(hook map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(hook, "rules") // absent reads as empty
	for _, rule := range rules {
		named, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
		if slices.ContainsFunc(named, func(r string) bool { return r == s.kind.resource.Resource || slices.Contains(hooked, r) }) {
			return true
		}
	}
	return false
}

// mountCertificates writes the certificates that Kueue makes to the directory from which it
// reads them, as the kubelet does with its Secret.
func (s *site) mountCertificates(ctx context.Context, dir string) error {
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		secret, err := s.kube.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
		if err != nil || len(secret.Data["tls.crt"]) == 0 {
			return false, nil // asked again
		}
		for name, content := range secret.Data {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				return false, fmt.Errorf("write Kueue's certificates: %w", err)
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for Kueue's certificates: %w", err)
	}
	return nil
}
