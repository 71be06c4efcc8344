package helm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// modes are the values under which the chart is tried.
func modes() map[string]map[string]any {
	on := func() map[string]any { return map[string]any{"enabled": true} } // Helm writes into what it is given
	return map[string]map[string]any{
		"defaults": {},
		"member":   {"mode": "member", "cluster": "east", "namespaces": []any{"team-a", "team-b"}},
		"member with kubectl": {
			"mode": "member", "cluster": "east", "namespaces": []any{"team-a", "team-b"},
			"kubernetesController": map[string]any{"enabled": true, "queues": []any{"research", "serving"}},
		},
		"trial": {"trial": on()},
		"controller": {
			"kubernetesController": map[string]any{"enabled": true, "defaultQueue": "a", "kueueLabel": false},
			"queues":               []any{map[string]any{"name": "a", "namespaces": []any{"team-b", "team-a"}}},
			"nats":                 map[string]any{"url": "tls://nats:4222", "tlsSecret": "nats-client"}, "database": map[string]any{"tlsSecret": "postgres-ca"},
			"kuberay": map[string]any{"version": "v1.6.1"}, "tracing": map[string]any{"endpoint": "http://collector:4318", "ratio": 0.1},
		},
		"webhooks": {
			"kubernetesController": map[string]any{"enabled": true, "admission": "webhooks"},
			"protectionPolicies":   map[string]any{"operators": []any{"system:serviceaccount:ray:operator"}},
			"queues":               []any{map[string]any{"name": "a", "namespaces": []any{"team-b", "team-a"}}},
		},
		"http": {
			"http": map[string]any{
				"enabled": true, "tlsSecret": "api", "clientCA": "people", "operators": []any{"olga", "otto"},
				"tokens": []any{map[string]any{"name": "alice", "sha256": strings.Repeat("2b", 32)}},
			},
			"networkPolicy": map[string]any{"httpFrom": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}}},
		},
		"console": {
			"http":    map[string]any{"enabled": true, "tlsSecret": "api", "clientCA": "people"},
			"console": map[string]any{"enabled": true, "tlsSecret": "pages", "serverCA": "authority", "actions": true, "rackLabel": "topology.example.org/rack", "dashboardURL": "https://ray.{cluster}.example.org/{name}", "logsURL": "https://logs.example.org/explore?q=%7Bid%3D{workload}%7D&x=y#z"},
			"networkPolicy": map[string]any{
				"httpFrom":    []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}},
				"consoleFrom": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.1.0.0/16"}}},
			},
		},
		"everything": {
			"serviceMonitor": on(), "prometheusRule": on(), "dashboard": on(),
			"image":        map[string]any{"repository": "registry.example/muster", "tag": "v1", "pullSecrets": []any{"pull"}},
			"nodeSelector": "pool=gpu", "ownNodeSelector": map[string]any{"pool": "system"},
			"podAnnotations": map[string]any{"a": "b"}, "podLabels": map[string]any{"c": "d"},
			"tolerations": []any{map[string]any{"operator": "Exists"}},
			"affinity":    map[string]any{"nodeAffinity": map[string]any{}},
			"networkPolicy": map[string]any{"metricsFrom": []any{map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}},
			}}},
			"queues": []any{
				map[string]any{"name": "a", "namespaces": []any{"team-a", "team-b"}},
				map[string]any{"name": "b", "namespaces": []any{"team-b"}, "strategy": "StrictFIFO"},
			},
		},
	}
}

// render returns the objects of the chart by kind, namespace and name.
func render(t *testing.T, values map[string]any) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := rendered(values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func rendered(values map[string]any) (map[string]*unstructured.Unstructured, error) {
	chart, err := loader.Load("muster")
	if err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, content := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		if err := decode(objects, content); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, content)
		}
	}
	return objects, nil
}

func decode(objects map[string]*unstructured.Unstructured, content string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(content)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		key := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		if objects[key] != nil {
			return fmt.Errorf("%s is there twice", key)
		}
		objects[key] = object
	}
}
