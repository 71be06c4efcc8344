package ray

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yaml3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/spec/fault"
)

// fromYAML turns YAML into JSON as kubectl does.
func fromYAML(data []byte) ([]byte, error) {
	const remedy = "want one RayCluster, RayJob or RayService in JSON or YAML"
	documents := yaml3.NewDecoder(bytes.NewReader(data))
	var document, another yaml3.Node
	if err := documents.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, refuse("manifest", "is empty", remedy)
		}
		return nil, refuse("manifest", "is neither JSON nor YAML: "+fault.Clip(err.Error()), remedy)
	}
	if err := documents.Decode(&another); !errors.Is(err, io.EOF) {
		return nil, refuse("manifest", "holds more than one YAML document", "submit each on its own")
	}
	if countNodes(&document, mostValues) < 0 {
		return nil, tooMany()
	}
	if err := checkNode(&document, nil); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, refuse("manifest", "is not acceptable YAML: "+fault.Clip(err.Error()), remedy)
	}
	return converted, nil
}

// countNodes returns how many more values there may be than the node has. Keys are
// none.
func countNodes(node *yaml3.Node, left int) int {
	if node.Kind != yaml3.DocumentNode {
		left--
	}
	for i, item := range node.Content {
		if node.Kind == yaml3.MappingNode && i%2 == 0 && item.Kind == yaml3.ScalarNode {
			continue
		}
		if left = countNodes(item, left); left < 0 {
			break
		}
	}
	return left
}

// checkNode refuses what makes YAML more than another way to write JSON.
func checkNode(node *yaml3.Node, path trail) error {
	where := func() string { return fmt.Sprintf("%s (line %d)", path, node.Line) }
	switch {
	case len(path) > maxDepth:
		return refuse(where(), fmt.Sprintf("is nested more than %d deep", maxDepth), "flatten it")
	case node.Kind == yaml3.AliasNode:
		return refuse(where(), "is the YAML alias "+fault.Quote("*"+node.Value), "write the value out: aliases are not accepted")
	case node.Anchor != "":
		return refuse(where(), "has the YAML anchor "+fault.Quote("&"+node.Anchor), "remove it: anchors and aliases are not accepted")
	case node.Style&yaml3.TaggedStyle != 0:
		return refuse(where(), "has the YAML tag "+fault.Quote(node.Tag), "remove it: tags are not accepted")
	case node.Kind == yaml3.MappingNode:
		return checkMapping(node, path)
	}
	for i, item := range node.Content {
		if node.Kind == yaml3.SequenceNode {
			path.enterItem(i)
		}
		if err := checkNode(item, path); err != nil {
			return err
		}
		if node.Kind == yaml3.SequenceNode {
			path.leave()
		}
	}
	return nil
}

// checkNested refuses a text in a field that is not an object in YAML, or that
// YAML's aliases make larger than it looks.
func checkNested(where, text, remedy string) error {
	var document yaml3.Node
	if err := yaml3.Unmarshal([]byte(text), &document); err != nil {
		return refuse(where, "does not decode: "+fault.Clip(err.Error()), remedy)
	}
	if countNodes(&document, mostValues) < 0 {
		return refuse(where, fmt.Sprintf("has more than %d values", mostValues), remedy)
	}
	if err := checkNode(&document, trail{where}); err != nil {
		return err
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return refuse(where, "does not decode: "+fault.Clip(err.Error()), remedy)
	}
	return nil
}

func checkMapping(node *yaml3.Node, path trail) error {
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		where := func() string { return fmt.Sprintf("%s (line %d)", path, key.Line) }
		if err := checkNode(key, path); err != nil {
			return err
		}
		line, twice := seen[key.Value]
		switch {
		case key.Kind != yaml3.ScalarNode:
			return refuse(where(), "has a key that is no text", "want names of fields as keys")
		case key.Value == "<<" && key.Tag == "!!merge":
			return refuse(where(), "has a YAML merge key", "write the fields out")
		case twice:
			return refuse(where(), fmt.Sprintf("has the key %s twice, first in line %d", fault.Quote(key.Value), line), "keep one")
		}
		seen[key.Value] = key.Line
		path.enter(key.Value)
		if err := checkNode(value, path); err != nil {
			return err
		}
		path.leave()
	}
	return nil
}
