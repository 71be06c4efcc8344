package kueue

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
)

// Is reports whether a file has an object of Kueue's, or of one of Muster's own kinds, be it in a List.
func Is(content []byte) bool {
	documents, err := strictyaml.Documents(content)
	return err == nil && slices.ContainsFunc(flat(documents), known)
}

// known reports whether a document is of a group or kind that this package reads.
func known(document *yaml.Node) bool {
	api, kind := text(document, "apiVersion"), text(document, "kind")
	return strings.HasPrefix(api, group) || strings.HasPrefix(api, ownGroup) && isOwn(kind)
}

// flat puts the items of a List, as `kubectl get -o yaml` shows it, in its place.
func flat(documents []*yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	for _, document := range documents {
		items := strictyaml.Field(document, "items")
		if items == nil || items.Kind != yaml.SequenceNode || !strings.HasSuffix(text(document, "kind"), "List") {
			all = append(all, document)
			continue
		}
		all = append(all, items.Content...)
	}
	return all
}

// Parse reads all objects of a file, each on its own. In a file a time of deletion is a
// remnant of what kubectl has shown, and is left out. The error is a fault.List with
// lines.
func Parse(content []byte) ([]Object, error) {
	objects, _, err := ParseFile(content)
	return objects, err
}

// ParseFile reads as Parse does, and names the objects of other kinds, which it skips where
// there is one of a known kind.
func ParseFile(content []byte) (objects []Object, skipped []string, err error) {
	documents, err := strictyaml.Documents(content)
	if err != nil {
		return nil, nil, err
	}
	documents = flat(documents)
	some := slices.ContainsFunc(documents, known)
	var faults fault.List
	for _, document := range documents {
		if some && foreign(document) {
			skipped = append(skipped, fmt.Sprintf("skipped %s %s: not a queue object", fault.Clip(text(document, "kind")), fault.Clip(text(document, "metadata", "name"))))
			continue
		}
		object, found := parse(document, false)
		objects = append(objects, object)
		faults = append(faults, found...)
	}
	if len(faults) > 0 {
		return nil, nil, faults
	}
	return objects, skipped, nil
}

// foreign reports whether a document is an object of another group and kind. One of Kueue's
// kinds with another group is a mistake.
func foreign(document *yaml.Node) bool {
	api, kind := text(document, "apiVersion"), text(document, "kind")
	return api != "" && kind != "" && !known(document) && !slices.Contains(kinds, kind)
}
