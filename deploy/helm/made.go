package helm

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/deploy/crd"
	"muster.dev/muster/deploy/policy"
)

// Policies returns files/policies.yaml: the policies of package policy.
func Policies() ([]byte, error) {
	var all struct {
		Policies []map[string]any `json:"policies"`
	}
	for _, document := range policy.Templates() {
		var one map[string]any
		if err := yaml.Unmarshal(document, &one); err != nil {
			return nil, fmt.Errorf("read manifest of package policy: %w", err)
		}
		all.Policies = append(all.Policies, one)
	}
	return header(all)
}

// Webhooks returns files/webhooks.yaml: the configurations of intake's webhooks, as package
// policy makes them.
func Webhooks() ([]byte, error) {
	webhooks := policy.Webhooks{
		Settings: policy.Settings{KueueLabel: true, Unset: true}, Namespaces: []string{queueNamespace},
		Client: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{}},
	}
	var all struct {
		Validating map[string]any `json:"validating"`
		Mutating   map[string]any `json:"mutating"`
	}
	for _, made := range []struct {
		make func() ([]byte, error)
		into *map[string]any
	}{{webhooks.Validating, &all.Validating}, {webhooks.Mutating, &all.Mutating}} {
		document, err := made.make()
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(document, made.into); err != nil {
			return nil, fmt.Errorf("read configuration of package policy: %w", err)
		}
	}
	return header(all)
}

// CRDs returns the files of crds/, by name: the definitions of package crd.
func CRDs() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, document := range crd.Documents() {
		var named struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &named); err != nil {
			return nil, fmt.Errorf("read manifest of package crd: %w", err)
		}
		files[named.Metadata.Name+".yaml"] = document
	}
	return files, nil
}

func header(content any) ([]byte, error) {
	encoded, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", content, err)
	}
	return append([]byte("# Made from the rest of the project by go test ./deploy/helm -update; not to be edited.\n"), encoded...), nil
}

// queueNamespace stands for the namespaces of queues in the file; the chart puts them in.
const queueNamespace = "QUEUE_NAMESPACE"
