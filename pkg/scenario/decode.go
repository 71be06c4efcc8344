package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	yaml3 "go.yaml.in/yaml/v3"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// ErrInvalid is wrapped by the errors of Parse.
var ErrInvalid = errors.New("invalid scenario")

// largest bounds a scenario file, in bytes.
const largest = 8 << 20

// Parse reads a scenario, in YAML or JSON, strictly. Errors say where in the
// file, which value, and what would be right.
func Parse(data []byte) (*File, error) {
	if len(data) > largest {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalid, len(data), largest)
	}
	if err := single(data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	long, err := writeOut(asJSON)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var f File
	if err := strict(long, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &f, nil
}

// single refuses a second document, which would otherwise be passed over.
func single(data []byte) error {
	documents := yaml3.NewDecoder(bytes.NewReader(data))
	var node yaml3.Node
	if err := documents.Decode(&node); err != nil {
		return nil // what is wrong with the first is said better below
	}
	if err := documents.Decode(&node); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: another document begins; want one scenario in a file", node.Line)
	}
	return nil
}

// writeOut turns what may be written shorter into its long form: a single
// element into a list, a name into an object that has it.
func writeOut(data []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	file, isObject := tree.(map[string]any)
	if !isObject {
		return nil, errors.New("want an object with name, nodes, steps and so on")
	}
	steps, _ := file["steps"].([]any)
	for _, step := range steps {
		s, isObject := step.(map[string]any)
		if !isObject {
			continue
		}
		for key, value := range s {
			switch key {
			case "say", "pass", "expect":
			default:
				s[key] = listOf(value)
			}
		}
		expect, isObject := s["expect"].(map[string]any)
		if !isObject {
			continue
		}
		for key, value := range expect {
			switch key {
			case "running":
				expect[key] = listOf(value)
			case "admitted", "evicted", "rejected", "waiting":
				expect[key] = namedList(value)
			}
		}
	}
	return json.Marshal(tree)
}

func listOf(value any) any {
	if _, isList := value.([]any); isList || value == nil {
		return value
	}
	return []any{value}
}

func namedList(value any) any {
	list, isList := listOf(value).([]any)
	if !isList {
		return value
	}
	for i, item := range list {
		switch item := item.(type) {
		case string:
			list[i] = map[string]any{"name": item}
		case map[string]any:
			for _, key := range []string{"nodes", "says"} {
				if inner, there := item[key]; there {
					item[key] = listOf(inner)
				}
			}
		}
	}
	return list
}

// goType is how the decoder tells where a value of the wrong kind is.
var goType = regexp.MustCompile(`^json: cannot unmarshal (\S+) into Go struct field [^.]*\.(\S+) of type (\S+)$`)

// strict decodes JSON and refuses unknown fields, with the path of each.
func strict(data []byte, into any) error {
	unknown, err := sigsjson.UnmarshalStrict(data, into, sigsjson.DisallowUnknownFields)
	if err != nil {
		if parts := goType.FindStringSubmatch(err.Error()); parts != nil {
			return fmt.Errorf("%s: is a %s; want %s", parts[2], parts[1], plain(parts[3]))
		}
		return err
	}
	return errors.Join(unknown...)
}

// plain says what a Go type is to somebody who writes YAML.
func plain(goType string) string {
	switch goType {
	case "string", "resource.Name":
		return "a text"
	case "int", "int32", "int64":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	if len(goType) > 1 && goType[:2] == "[]" {
		return "a list"
	}
	return "an object"
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
		return 0, fault(path, "%w", err)
	}
	return time.Duration(parsed), nil
}
