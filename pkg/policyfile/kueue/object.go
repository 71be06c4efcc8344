package kueue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

// deletedField of the metadata is when a cluster was asked to delete the object.
const deletedField = "deletionTimestamp"

// Key names an object. Namespace is empty for all kinds but LocalQueue, and QueueHold of one
// namespace.
type Key struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is how messages call the object: as kubectl does.
func (k Key) String() string {
	group, _ := groupOf(k.Kind)
	name := strings.ToLower(k.Kind) + "." + strings.TrimSuffix(group, "/") + "/" + k.Name
	if k.Namespace != "" {
		name += " of namespace " + k.Namespace
	}
	return name
}

// called is how messages about a manifest call the object.
func (k Key) called() string { return fmt.Sprintf("%s %q", k.Kind, k.Name) }

// Object is one manifest with its policy.
type Object struct {
	Key
	// Manifest is the object as JSON, without its status.
	Manifest json.RawMessage
	// Policy is that of this object alone; empty for kinds that do nothing.
	Policy quota.Config
	// Deleted is when its cluster was asked to delete it, as the cluster writes times; empty
	// for an object that stays. Nothing is admitted through a deleted one.
	Deleted string
	// Notes name its settings that were accepted and have no effect.
	Notes []string

	origin origin
	former fault.List // its fields of another version
}

// kinds are those that are read, in the order in which they rest on each other.
var kinds = []string{
	"ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue", "WorkloadPriorityClass",
	"AdmissionCheck", "ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster", "Topology", QueueHold, ClusterQueueHold, Cluster, ClusterCordon, Reservation, Budget, BudgetHold,
}

// Kinds lists the kinds that are read, those that others name first.
func Kinds() []string { return slices.Clone(kinds) }

// KindOf completes a kind that is written as kubectl accepts it: in any
// case, singular or plural, with the group or without.
func KindOf(written string) (string, error) {
	word := strings.ToLower(written)
	for _, of := range []string{group, ownGroup} {
		word = strings.TrimSuffix(word, "."+strings.TrimSuffix(of, "/"))
	}
	for _, kind := range kinds {
		singular := strings.ToLower(kind)
		if word == singular || word == singular+"s" || word == singular+"es" || word == strings.TrimSuffix(singular, "y")+"ies" {
			return kind, nil
		}
	}
	return "", fmt.Errorf("kind %q is not known; want one of %s", written, strings.Join(kinds, ", "))
}

// fields are what a manifest may have at its top.
var fields = []string{"apiVersion", "kind", "metadata", "spec", "value", "description", "status"}

// ParseOne reads a manifest in JSON. The error is a fault.List without lines; with
// one the object has the key as far as it could be read.
func ParseOne(manifest json.RawMessage) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(manifest))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return Object{}, fault.List{fault.At("", "the manifest is no JSON: %v", err)}
	}
	object, faults := parse(nodeOf(value), true)
	return object, faults.Err()
}

// nodeOf is a value of JSON as YAML that is at no line.
func nodeOf(value any) *yaml.Node {
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, nodeOf(key), nodeOf(v[key]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			node.Content = append(node.Content, nodeOf(item))
		}
		return node
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	default: // a number, true or false
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
	}
}

// parse reads a document, with the time of its deletion if asked. With faults the object has
// the key as far as it could be read.
func parse(document *yaml.Node, deletion bool) (Object, fault.List) {
	if document.Kind != yaml.MappingNode {
		return Object{}, fault.List{{Line: document.Line, Text: "want a manifest, an object with " + strings.Join(fields, ", ")}}
	}
	o := Object{Key: Key{Kind: text(document, "kind"), Name: text(document, "metadata", "name")}}
	if o.Kind == "LocalQueue" {
		o.Namespace = cmp.Or(text(document, "metadata", "namespace"), "default")
	}
	if o.Kind == QueueHold {
		o.Namespace = text(document, "metadata", "namespace")
	}
	o.origin = origin{document: document, name: o.called(), field: fieldOf(o.Kind)}
	var faults fault.List
	add := func(line int, path, format string, args ...any) {
		faults = append(faults, fault.Fault{Line: line, Path: o.origin.name + ": " + path, Text: fmt.Sprintf(format, args...)})
	}
	if alias := aliasIn(document); alias != nil {
		return o, fault.List{{Line: alias.Line, Path: o.origin.name, Text: fmt.Sprintf("the YAML alias or anchor %q: write the value out", alias.Value+alias.Anchor)}}
	}
	for i := 0; i+1 < len(document.Content); i += 2 {
		if key := document.Content[i]; !slices.Contains(fields, key.Value) {
			add(key.Line, key.Value, "there is no such field; want one of %s", strings.Join(fields, ", "))
		}
	}
	apiVersion := text(document, "apiVersion")
	group, versions := groupOf(o.Kind)
	switch version := strings.TrimPrefix(apiVersion, group); {
	case (version == apiVersion || !slices.Contains(versions, version)) && IsHold(o.Kind):
		add(strictyaml.Line(document, "apiVersion"), "apiVersion", "%q: want %sv1beta1", apiVersion, group)
	case version == apiVersion, !slices.Contains(versions, version):
		add(strictyaml.Line(document, "apiVersion"), "apiVersion", "%q: want %sv1beta1 or v1beta2", apiVersion, group)
	case o.Name == "":
		add(strictyaml.Line(document, "metadata.name"), "metadata.name", "is missing")
	}
	if deletion && (o.Kind == "ClusterQueue" || o.Kind == "LocalQueue") {
		o.Deleted = text(document, "metadata", deletedField)
		if _, err := time.Parse(time.RFC3339, o.Deleted); err != nil && o.Deleted != "" {
			add(strictyaml.Line(document, "metadata."+deletedField), "metadata."+deletedField, "%q: want a time such as 2026-01-02T15:04:05Z", o.Deleted)
		}
	}
	if len(faults) > 0 {
		return o, faults
	}
	if faults = o.readPolicy(document); len(faults) > 0 {
		return o, faults
	}
	var err error
	if o.Manifest, err = o.bare(apiVersion); err != nil {
		add(document.Line, "spec", "%v", err)
	}
	return o, faults
}

// bare is the manifest with nothing in it that the API server or kubectl writes,
// its fields in order, so that the same object is the same text.
func (o *Object) bare(apiVersion string) (json.RawMessage, error) {
	metadata := map[string]any{"name": o.Name, "namespace": cmp.Or(o.Namespace, text(o.origin.document, "metadata", "namespace"))}
	if cost := text(o.origin.document, "metadata", "annotations", costKey); cost != "" && o.Kind == "ResourceFlavor" {
		metadata["annotations"] = map[string]string{costKey: cost}
	}
	if o.Deleted != "" {
		metadata[deletedField] = o.Deleted
	}
	kept := map[string]any{"apiVersion": apiVersion, "kind": o.Kind, "metadata": metadata}
	for _, field := range []string{"spec", "value", "description"} {
		node := strictyaml.Field(o.origin.document, field)
		if node == nil {
			continue
		}
		encoded, err := strictyaml.JSON(node)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		kept[field] = encoded
	}
	return json.Marshal(kept)
}

// DeletedAt is the manifest with the time of its deletion.
func (o Object) DeletedAt(at time.Time) (json.RawMessage, error) {
	o.Deleted = at.UTC().Format(time.RFC3339)
	return o.bare(text(o.origin.document, "apiVersion"))
}

func aliasIn(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return node
	}
	for _, inner := range node.Content {
		if found := aliasIn(inner); found != nil {
			return found
		}
	}
	return nil
}
