package scenario

import (
	"encoding/json"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// largest bounds a scenario file, in bytes.
const largest = 8 << 20

// Parse reads a scenario, in YAML or JSON, strictly. The error is a fault.List: what
// is wrong, with its line and path, and what would be right.
func Parse(data []byte) (*File, error) { return ParseWith(data, nil) }

// ParseWith is Parse for a scenario that is played with the queues of a file, and
// has none of its own.
func ParseWith(data []byte, queues *queuesfile.File) (*File, error) {
	if len(data) > largest {
		return nil, fault.List{{Text: fmt.Sprintf("the file has %d bytes; want at most %d", len(data), largest)}}
	}
	node, err := strictyaml.Document(data)
	if err != nil {
		return nil, err
	}
	writeOut(node)
	f := File{source: node}
	if err := strictyaml.Decode(node, "", &f); err != nil {
		return nil, err
	}
	if faults := emptyExpectations(node); len(faults) > 0 {
		return nil, strictyaml.Locate(node, faults)
	}
	if queues != nil {
		if err := f.useQueues(queues); err != nil {
			return nil, strictyaml.Locate(node, err)
		}
	}
	if err := f.validate(queues == nil); err != nil {
		return nil, strictyaml.Locate(node, err)
	}
	return &f, nil
}

// useQueues has the scenario played with the queues of a file.
func (f *File) useQueues(queues *queuesfile.File) error {
	var faults fault.List
	for _, name := range []string{
		"queues", "resourceFlavors", "cohorts", "clusterQueues", "localQueues", "workloadPriorityClasses", "reservations", "fairSharing", "admissionFairSharing",
	} {
		if strictyaml.Field(f.source, name) != nil {
			faults.Add(name, "the scenario is played with the queues of another file; want none here")
		}
	}
	f.File, f.given = *queues, true
	return faults.Err()
}

// emptyExpectations refuses "expect:" with nothing behind it, which would be as if
// it were left out.
func emptyExpectations(root *yaml.Node) fault.List {
	var faults fault.List
	steps := strictyaml.Field(root, "steps")
	if steps == nil {
		return nil
	}
	for i, step := range steps.Content {
		if expect := strictyaml.Field(step, "expect"); expect != nil && expect.ShortTag() == "!!null" {
			faults.Add(fault.Index("steps", i)+".expect", "is empty; want what is expected, or {} for nothing")
		}
	}
	return faults
}

// writeOut turns what may be written shorter into its long form: a single
// element into a list, a name into an object that has it.
func writeOut(root *yaml.Node) {
	steps := strictyaml.Field(root, "steps")
	if steps == nil {
		return
	}
	for _, step := range steps.Content {
		rewrite(step, func(key string, value *yaml.Node) *yaml.Node {
			switch key {
			case "say", "pass":
				return value
			case "expect":
				rewrite(value, writeOutExpected)
				return value
			}
			return listOf(value)
		})
	}
}

func writeOutExpected(key string, value *yaml.Node) *yaml.Node {
	switch key {
	case "running":
		return listOf(value)
	case "admitted", "evicted", "rejected", "waiting":
		return namedList(value)
	}
	return value
}

// rewrite replaces the values of an object.
func rewrite(object *yaml.Node, by func(key string, value *yaml.Node) *yaml.Node) {
	if object.Kind == yaml.AliasNode {
		object = object.Alias
	}
	if object.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(object.Content); i += 2 {
		object.Content[i+1] = by(object.Content[i].Value, object.Content[i+1])
	}
}

func listOf(value *yaml.Node) *yaml.Node {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Kind == yaml.SequenceNode || value.ShortTag() == "!!null" {
		return value
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: value.Line, Content: []*yaml.Node{value}}
}

func namedList(value *yaml.Node) *yaml.Node {
	list := listOf(value)
	for i, item := range list.Content {
		if item.Kind == yaml.ScalarNode && item.ShortTag() == "!!str" {
			name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "name", Line: item.Line}
			list.Content[i] = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: item.Line, Content: []*yaml.Node{name, item}}
			continue
		}
		rewrite(item, func(key string, value *yaml.Node) *yaml.Node {
			if key == "nodes" || key == "says" {
				return listOf(value)
			}
			return value
		})
	}
	return list
}

// Amounts are quantities as Kubernetes writes them: "500m", 4, "16Gi".
type Amounts map[resource.Name]Scalar

// Scalar is the text of a value, which may be written as a text or a number. It
// is looked at where its place in the file is known.
type Scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Scalar) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		text = string(data)
	}
	*s = Scalar(text)
	return nil
}

// duration reads a span of time; nothing is none.
func (s Scalar) duration(path string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	parsed, err := workload.ParseDuration(string(s))
	if err != nil {
		return 0, fault.At(path, "%s", err)
	}
	return time.Duration(parsed), nil
}
