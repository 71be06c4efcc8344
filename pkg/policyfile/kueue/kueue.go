// Package kueue reads Kueue's manifests as policy of Muster: ResourceFlavor,
// ClusterQueue, Cohort, LocalQueue and WorkloadPriorityClass, of v1beta1 and
// v1beta2, so that those of a cluster that runs Kueue work unmodified. What
// Muster does not do is refused; what it does not need is named and left out.
// QueueHold is a kind of Muster's own beside them.
//
// What the policy means, and whether it is valid, is package quota's. The package
// is pure.
package kueue

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

// group is the API group of Kueue's manifests, ownGroup that of Muster's own kind.
const (
	group    = "kueue.x-k8s.io/"
	ownGroup = "muster.dev/"
)

// QueueHold is the kind of an operator's hold of a queue. It is Muster's own: applied,
// stored and deleted as Kueue's kinds are, and of no cluster.
const QueueHold = "QueueHold"

// groupOf returns the API group of a kind and its versions.
func groupOf(kind string) (name string, versions []string) {
	if kind == QueueHold {
		return ownGroup, []string{"v1beta1"}
	}
	return group, []string{"v1alpha1", "v1beta1", "v1beta2"}
}

// Is reports whether the first document of a file is one of Kueue's, or a QueueHold.
func Is(content []byte) bool {
	var first yaml.Node
	if yaml.NewDecoder(bytes.NewReader(content)).Decode(&first) != nil || len(first.Content) == 0 {
		return false
	}
	api, kind := text(first.Content[0], "apiVersion"), text(first.Content[0], "kind")
	return strings.HasPrefix(api, group) || kind == QueueHold && strings.HasPrefix(api, ownGroup)
}

// text is a field of an object that is a text; empty when there is none.
func text(n *yaml.Node, path ...string) string {
	for _, name := range path {
		if n = strictyaml.Field(n, name); n == nil {
			return ""
		}
	}
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// origin is the part of a document that a policy is read from, and how a message
// calls it.
type origin struct {
	document    *yaml.Node
	node        *yaml.Node
	name, field string // such as `ClusterQueue "a"`, and spec
}

// at is a path below the part, as it is in the document.
func (o origin) at(path string) string {
	if path == "name" || path == "namespace" {
		return "metadata." + path
	}
	return fault.Below(o.field, path)
}

// locate puts a fault of the part at its place in the file.
func (o origin) locate(f fault.Fault) fault.Fault {
	at := o.at(f.Path)
	if f.Line == 0 {
		if strings.HasPrefix(at, "metadata.") {
			f.Line = strictyaml.Line(o.document, at)
		} else {
			f.Line = strictyaml.Line(o.node, f.Path)
		}
	}
	f.Path = o.name + ": " + at
	return f
}

// inPolicy is the path of an element of a policy, and the rest of a path.
var inPolicy = regexp.MustCompile(`^([A-Za-z]+\[[0-9]+\])\.?(.*)$`)

// Locate returns faults of the merged policy of objects at their places in the
// file.
func Locate(objects []Object, err error) fault.List {
	origins, seen := map[string]origin{}, map[string]int{}
	for _, o := range objects {
		for path := range elements(o.Says) { // one at most
			list := strings.TrimSuffix(path, "[0]")
			origins[fault.Index(list, seen[list])] = o.origin
			seen[list]++
		}
	}
	return replace(origins, err)
}

// Name returns faults of a policy with the names of its objects where they are in
// its lists, for policies that are of no file.
func Name(policy quota.Config, err error) fault.List {
	origins := map[string]origin{}
	for path, key := range elements(policy) {
		name := key.called()
		if key.Namespace != "" {
			name += fmt.Sprintf(" of namespace %q", key.Namespace)
		}
		origins[path] = origin{document: &yaml.Node{}, node: &yaml.Node{}, name: name, field: fieldOf(key.Kind)}
	}
	return replace(origins, err)
}

func replace(origins map[string]origin, err error) fault.List {
	if err == nil {
		return nil
	}
	var faults fault.List
	for _, f := range fault.Of(err) {
		if parts := inPolicy.FindStringSubmatch(f.Path); parts != nil {
			if o, known := origins[parts[1]]; known {
				f.Path = parts[2]
				f = o.locate(f)
			}
		}
		faults = append(faults, f)
	}
	return faults
}

// fieldOf is where a kind says what it means; a priority class says it at the top.
func fieldOf(kind string) string {
	if kind == "WorkloadPriorityClass" {
		return ""
	}
	return "spec"
}

// elements names the objects of a policy by their paths in it.
func elements(policy quota.Config) map[string]Key {
	keys := map[string]Key{}
	for i, o := range policy.Flavors {
		keys[fault.Index("resourceFlavors", i)] = Key{Kind: "ResourceFlavor", Name: o.Name}
	}
	for i, o := range policy.Cohorts {
		keys[fault.Index("cohorts", i)] = Key{Kind: "Cohort", Name: o.Name}
	}
	for i, o := range policy.ClusterQueues {
		keys[fault.Index("clusterQueues", i)] = Key{Kind: "ClusterQueue", Name: o.Name}
	}
	for i, o := range policy.LocalQueues {
		keys[fault.Index("localQueues", i)] = Key{Kind: "LocalQueue", Namespace: o.Namespace, Name: o.Name}
	}
	for i, o := range policy.Priorities {
		keys[fault.Index("workloadPriorityClasses", i)] = Key{Kind: "WorkloadPriorityClass", Name: o.Name}
	}
	for i, o := range policy.AdmissionChecks {
		keys[fault.Index("admissionChecks", i)] = Key{Kind: "AdmissionCheck", Name: o.Name}
	}
	for i, o := range policy.Holds {
		keys[fault.Index("queueHolds", i)] = Key{Kind: QueueHold, Name: o.Name}
	}
	return keys
}

// says reads what a document of a known group and name means.
func (o *Object) says(document *yaml.Node) fault.List {
	refuse := func(field, format string, args ...any) fault.List {
		return fault.List{{Line: strictyaml.Line(document, field), Path: o.origin.name + ": " + field, Text: fmt.Sprintf(format, args...)}}
	}
	spec := &yaml.Node{Kind: yaml.MappingNode, Line: document.Line}
	if written := strictyaml.Field(document, "spec"); written != nil && written.Kind == yaml.MappingNode {
		*spec = *written
		spec.Content = slices.Clone(written.Content)
	} else if written != nil && written.ShortTag() != "!!null" {
		return refuse("spec", "want an object")
	}
	for _, field := range []string{"name", "namespace"} {
		if strictyaml.Field(spec, field) != nil {
			return refuse("spec."+field, "there is no such field; the %s is in metadata", field)
		}
	}
	o.origin.node = spec
	c := &o.Says
	switch o.Kind {
	case "ResourceFlavor":
		return take(o.origin, &c.Flavors, func(f *quota.Flavor) { f.Name = o.Name })
	case "ClusterQueue":
		rename(spec, "cohort", "cohortName") // its name in v1beta1
		o.drop("admissionScope", "past use counts for all queues or for none")
		return take(o.origin, &c.ClusterQueues, func(q *quota.ClusterQueue) { q.Name = o.Name })
	case "Cohort":
		rename(spec, "parent", "parentName")
		return take(o.origin, &c.Cohorts, func(co *quota.Cohort) { co.Name = o.Name })
	case "LocalQueue":
		o.drop("fairSharing", "shares are of ClusterQueues")
		return take(o.origin, &c.LocalQueues, func(l *quota.LocalQueue) { l.Name, l.Namespace = o.Name, o.Namespace })
	case "WorkloadPriorityClass": // it has no spec
		spec.Content = nil
		for i := 0; i+1 < len(document.Content); i += 2 {
			if key := document.Content[i]; key.Value == "value" || key.Value == "description" {
				spec.Content = append(spec.Content, key, document.Content[i+1])
			}
		}
		return take(o.origin, &c.Priorities, func(p *quota.PriorityClass) { p.Name = o.Name })
	case QueueHold:
		return take(o.origin, &c.Holds, func(h *quota.QueueStop) { h.Name, h.Since = o.Name, h.Since.UTC() })
	case "AdmissionCheck":
		if faults := take(o.origin, &c.AdmissionChecks, func(a *quota.AdmissionCheck) { a.Name = o.Name }); faults != nil {
			return faults
		}
		o.Notes = append(o.Notes, noteOfCheck(o.origin.name, c.AdmissionChecks[len(c.AdmissionChecks)-1]))
		return nil
	case "ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster":
		o.Notes = append(o.Notes, o.origin.name+" does nothing: Muster admits on nodes that exist, without admission checks")
		return nil
	case "Topology":
		o.Notes = append(o.Notes, o.origin.name+" does nothing: Muster reads topology from the labels of nodes")
		return nil
	}
	return refuse("kind", "is not known; want ResourceFlavor, ClusterQueue, Cohort, LocalQueue, WorkloadPriorityClass or QueueHold")
}

// noteOfCheck says what an AdmissionCheck comes to.
func noteOfCheck(name string, check quota.AdmissionCheck) string {
	if check.ControllerName == quota.ProvisioningController {
		return name + " asks for no nodes: Muster admits on nodes that exist"
	}
	return fmt.Sprintf("%s makes each ClusterQueue that names it inactive: Muster does not ask the controller %q", name, check.ControllerName)
}

// rename gives a field its present name.
func rename(spec *yaml.Node, old, name string) {
	for i := 0; i+1 < len(spec.Content); i += 2 {
		if spec.Content[i].Value == old {
			key := *spec.Content[i]
			key.Value = name
			spec.Content[i] = &key
		}
	}
}

// drop takes fields out that do nothing; pairs are a field and why.
func (o *Object) drop(pairs ...string) {
	spec := o.origin.node
	for pair := range slices.Chunk(pairs, 2) {
		for i := 0; i+1 < len(spec.Content); i += 2 {
			if spec.Content[i].Value != pair[0] {
				continue
			}
			value := spec.Content[i+1]
			spec.Content = slices.Delete(spec.Content, i, i+2)
			if value.Kind != yaml.MappingNode || len(value.Content) > 0 { // an empty selector asks for nothing
				o.Notes = append(o.Notes, fmt.Sprintf("%s: spec.%s does nothing: %s", o.origin.name, pair[0], pair[1]))
			}
			break
		}
	}
}

// take decodes a part of a document as package quota writes it.
func take[T any](o origin, into *[]T, complete func(*T)) fault.List {
	var value T
	if err := strictyaml.Decode(o.node, "", &value); err != nil {
		var faults fault.List
		for _, f := range fault.Of(err) {
			faults = append(faults, o.locate(f))
		}
		return faults
	}
	complete(&value)
	*into = append(*into, value)
	return nil
}
