package strictyaml

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/spec/fault"
)

// Field returns the value of a key of a mapping; nil when there is none.
func Field(n *yaml.Node, name string) *yaml.Node {
	var found *yaml.Node
	if n = target(n); n.Kind == yaml.MappingNode {
		each(n, func(key, v *yaml.Node) {
			if found == nil && key.Value == name {
				found = v
			}
		})
	}
	return found
}

// step is a part of a path: a field, a key in quotes, or an index.
var step = regexp.MustCompile(`^\.?([A-Za-z_][A-Za-z0-9_-]*)|^\[("(?:[^"\\]|\\.)*")\]|^\[([0-9]+)\]`)

// Line returns the line of what is at the path below a node, or of the nearest
// above it that is there.
func Line(n *yaml.Node, path string) int {
	line := n.Line
	for path != "" {
		at := step.FindStringSubmatch(path)
		if at == nil {
			return line
		}
		path = path[len(at[0]):]
		n = target(n)
		if at[3] != "" {
			i, err := strconv.Atoi(at[3])
			if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
				return line
			}
			n = n.Content[i]
			line = n.Line
			continue
		}
		name := at[1]
		if at[2] != "" {
			name, _ = strconv.Unquote(at[2]) // written by strconv.Quote
		}
		var found *yaml.Node
		if n.Kind == yaml.MappingNode {
			each(n, func(key, v *yaml.Node) {
				if found == nil && key.Value == name {
					found, line = v, key.Line
				}
			})
		}
		if found == nil {
			return line
		}
		n = found
	}
	return line
}

// Locate returns the faults that an error consists of, with the lines of those
// that have none; their paths begin at the node.
func Locate(n *yaml.Node, err error) fault.List {
	if err == nil {
		return nil
	}
	var faults fault.List
	for _, f := range fault.Of(err) {
		if f.Line == 0 {
			f.Line = Line(n, f.Path)
		}
		faults = append(faults, f)
	}
	return faults
}

// shown is a scalar as a message has it.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.ShortTag() == "!!str" {
		return fmt.Sprintf("%q", n.Value)
	}
	return n.Value
}
