// Package kueue reads Kueue's manifests, v1beta1 and v1beta2, into Muster's
// policy (package quota): ResourceFlavor, ClusterQueue, Cohort, LocalQueue and
// WorkloadPriorityClass. AdmissionCheck, ProvisioningRequestConfig and Topology
// are accepted and named as doing nothing, and so are the fields that Muster has
// no use for; a field that it does not know is refused by name.
//
// It is not for what the words mean (package quota). The package is pure.
package kueue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/quota"
)

// group is the API group of Kueue's manifests.
const group = "kueue.x-k8s.io/"

// ErrInvalid is wrapped by every error of Read.
var ErrInvalid = errors.New("invalid Kueue manifest")

// document is a manifest as all kinds have it; WorkloadPriorityClass has no spec.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec        map[string]any `json:"spec"`
	Value       json.Number    `json:"value"`
	Description string         `json:"description"`
}

// Is reports whether the first document of a file is one of Kueue's.
func Is(content []byte) bool {
	var first document
	return yaml3.NewDecoder(bytes.NewReader(content)).Decode(new(yaml3.Node)) == nil &&
		yaml.Unmarshal(bytes.SplitN(content, []byte("\n---"), 2)[0], &first) == nil && strings.HasPrefix(first.APIVersion, group)
}

// Read reads all documents. notes name, in the order of the documents, what was
// accepted and does nothing.
func Read(content []byte) (config quota.Config, notes []string, err error) {
	r := reader{}
	documents := yaml3.NewDecoder(bytes.NewReader(content))
	for n := 1; ; n++ {
		var node any
		if err := documents.Decode(&node); errors.Is(err, io.EOF) {
			return r.config, r.notes, nil
		} else if err != nil {
			return config, nil, fmt.Errorf("%w: document %d: %w", ErrInvalid, n, err)
		}
		if node == nil {
			continue // an empty document
		}
		encoded, err := json.Marshal(node)
		var d document
		if err == nil {
			err = json.Unmarshal(encoded, &d)
		}
		if err == nil {
			err = r.add(d)
		}
		if err != nil {
			return config, nil, fmt.Errorf("%w: document %d, %s %q: %w", ErrInvalid, n, d.Kind, d.Metadata.Name, err)
		}
	}
}

type reader struct {
	config quota.Config
	notes  []string
}

func (r *reader) add(d document) error {
	switch version := strings.TrimPrefix(d.APIVersion, group); {
	case version == d.APIVersion, !slices.Contains([]string{"v1alpha1", "v1beta1", "v1beta2"}, version):
		return fmt.Errorf("apiVersion %q: want %sv1beta1 or v1beta2", d.APIVersion, group)
	case d.Metadata.Name == "":
		return errors.New("metadata.name is missing")
	}
	if d.Spec == nil {
		d.Spec = map[string]any{}
	}
	switch d.Kind {
	case "ResourceFlavor":
		return take(d, &r.config.Flavors)
	case "ClusterQueue":
		if cohort, old := d.Spec["cohort"]; old { // its name in v1beta1
			delete(d.Spec, "cohort")
			d.Spec["cohortName"] = cohort
		}
		r.drop(d, "namespaceSelector", "Muster lets the namespaces of LocalQueues in", "admissionChecks", "Muster asks nobody else",
			"admissionChecksStrategy", "Muster asks nobody else", "admissionScope", "past use counts for all queues or for none")
		return take(d, &r.config.ClusterQueues)
	case "Cohort":
		if parent, old := d.Spec["parent"]; old {
			delete(d.Spec, "parent")
			d.Spec["parentName"] = parent
		}
		return take(d, &r.config.Cohorts)
	case "LocalQueue":
		r.drop(d, "fairSharing", "shares are of ClusterQueues")
		d.Spec["namespace"] = d.Metadata.Namespace
		if d.Metadata.Namespace == "" {
			d.Spec["namespace"] = "default"
		}
		return take(d, &r.config.LocalQueues)
	case "WorkloadPriorityClass":
		d.Spec = map[string]any{"value": d.Value, "description": d.Description}
		return take(d, &r.config.Priorities)
	case "AdmissionCheck", "ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster":
		r.notes = append(r.notes, fmt.Sprintf("%s %q does nothing: Muster admits on nodes that exist and asks nobody else", d.Kind, d.Metadata.Name))
		return nil
	case "Topology":
		r.notes = append(r.notes, fmt.Sprintf("%s %q does nothing: Muster reads topology from the labels of nodes", d.Kind, d.Metadata.Name))
		return nil
	}
	return errors.New("the kind is not known; want ResourceFlavor, ClusterQueue, Cohort, LocalQueue or WorkloadPriorityClass")
}

// drop takes fields out that do nothing; pairs are a field and why.
func (r *reader) drop(d document, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if value, set := d.Spec[pair[0]]; set {
			delete(d.Spec, pair[0])
			if m, isMap := value.(map[string]any); isMap && len(m) == 0 {
				continue // an empty selector asks for nothing
			}
			r.notes = append(r.notes, fmt.Sprintf("%s %q: spec.%s does nothing: %s", d.Kind, d.Metadata.Name, pair[0], pair[1]))
		}
	}
}

// take decodes the spec as package quota writes it, and refuses fields that it
// does not know.
func take[T any](d document, into *[]T) error {
	fields := maps.Clone(d.Spec)
	fields["name"] = d.Metadata.Name
	encoded, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	var value T
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	*into = append(*into, value)
	return nil
}
