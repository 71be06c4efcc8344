// Package strictyaml reads YAML that people write into Go values, by the json tags
// of their fields. It accepts nothing that it does not know, and reports all faults of
// a file with line, path, value and what would be right (package fault).
//
// It serves files of settings. It is not for manifests of Kubernetes objects, which
// are stored as they are and judged by their kind (package ray). The package is
// pure.
package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/spec/fault"
)

// Documents returns the documents of a file, without those that are empty.
func Documents(content []byte) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, unreadable(content, err)
		}
		root := document.Content[0]
		if isNull(root) {
			continue
		}
		// What cannot be at all: keys that are there twice, aliases of themselves or
		// of too much.
		var value any
		if err := root.Decode(&value); err != nil {
			return nil, unreadable(content, err)
		}
		documents = append(documents, root)
	}
}

// Document returns the only document of a file.
func Document(content []byte) (*yaml.Node, error) {
	documents, err := Documents(content)
	switch {
	case err != nil:
		return nil, err
	case len(documents) == 0:
		return nil, fault.List{{Text: "the file is empty"}}
	case len(documents) > 1:
		return nil, fault.List{{Line: documents[1].Line, Text: "another document begins; want one in a file"}}
	}
	return documents[0], nil
}

// errorLine is an error of the YAML reader, and one line of such an error.
var errorLine = regexp.MustCompile(`(?m)^(?:yaml: |  )?line ([0-9]+): (.*)$`)

// unreadable turns an error of the YAML reader into faults.
func unreadable(content []byte, err error) error {
	var faults fault.List
	for _, match := range errorLine.FindAllStringSubmatch(err.Error(), -1) {
		line, _ := strconv.Atoi(match[1]) // digits
		faults = append(faults, fault.Fault{Line: line, Text: match[2]})
	}
	var twice *yaml.TypeError
	if len(faults) == 0 {
		faults.Add("", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	} else if !errors.As(err, &twice) {
		if line := tabNear(content, faults[0].Line); line > 0 {
			return fault.List{{Line: line, Text: "a tab indents the line; want spaces, YAML allows nothing else"}}
		}
	}
	return faults
}

// tabNear returns the line at or beside the given one that a tab indents; 0 when
// there is none. The YAML reader's line is at times the one before or after.
func tabNear(content []byte, near int) int {
	for i, line := range strings.Split(string(content), "\n") {
		if at := i + 1; at >= near-1 && at <= near+1 && strings.HasPrefix(strings.TrimLeft(line, " "), "\t") && strings.TrimSpace(line) != "" {
			return at
		}
	}
	return 0
}

// Decode reads the document, or a part of it that is at path, into a value. It
// returns all faults as a fault.List, and leaves the value alone when there are
// some.
func Decode(node *yaml.Node, path string, into any) error {
	c := &checker{}
	c.check(node, path, reflect.TypeOf(into).Elem())
	if len(c.faults) > 0 {
		return c.faults
	}
	encoded, err := JSON(node)
	if err == nil {
		err = json.Unmarshal(encoded, into)
	}
	if err != nil { // the checker should have found it
		return fault.List{{Line: node.Line, Path: path, Text: err.Error()}}
	}
	return nil
}

// JSON is a part of a document as JSON.
func JSON(node *yaml.Node) (json.RawMessage, error) { return json.Marshal(value(node)) }

// value is a node as encoding/json knows it.
func value(n *yaml.Node) any {
	n = target(n)
	switch n.Kind {
	case yaml.MappingNode:
		fields := map[string]any{}
		each(n, func(key, v *yaml.Node) {
			if _, own := fields[key.Value]; !own {
				fields[key.Value] = value(v)
			}
		})
		return fields
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = value(item)
		}
		return list
	}
	switch n.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		var scalar any
		if err := n.Decode(&scalar); err != nil {
			return n.Value
		}
		if number, is := scalar.(float64); is && (math.IsInf(number, 0) || math.IsNaN(number)) {
			return n.Value
		}
		return scalar
	}
	return n.Value
}

// each calls visit with the keys of a mapping and their values; those of a merge
// (<<) come last.
func each(n *yaml.Node, visit func(key, value *yaml.Node)) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			merged = append(merged, n.Content[i+1])
			continue
		}
		visit(n.Content[i], n.Content[i+1])
	}
	for _, m := range merged {
		switch m = target(m); m.Kind {
		case yaml.MappingNode:
			each(m, visit)
		case yaml.SequenceNode:
			for _, item := range m.Content {
				if item = target(item); item.Kind == yaml.MappingNode {
					each(item, visit)
				}
			}
		}
	}
}

// target is what an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
