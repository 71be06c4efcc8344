package kueue_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"muster.dev/muster/pkg/policyfile/kueue"
)

// schema is a part of a definition's schema.
type schema struct {
	Type                 string             `yaml:"type"`
	Properties           map[string]*schema `yaml:"properties"`
	Items                *schema            `yaml:"items"`
	AdditionalProperties *schema            `yaml:"additionalProperties"`
	Enum                 []string           `yaml:"enum"`
}

type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema schema `yaml:"openAPIV3Schema"`
			}
		}
	}
}

// published reads the schemas that Kueue 0.15.0 publishes: of each kind and version.
func published(t *testing.T) []definition {
	t.Helper()
	file, err := os.Open("../../../test/kubequeues/testdata/kueue-crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []definition
	for decoder := yaml.NewDecoder(file); ; {
		var d definition
		if err := decoder.Decode(&d); err != nil {
			break
		}
		all = append(all, d)
	}
	if len(all) != 8 {
		t.Fatalf("%d definitions are published, want 8", len(all))
	}
	return all
}

// leaves calls each with the path of every field below that has no fields, a value that has
// it, and the same value without it.
func (s *schema) leaves(path string, each func(path string, with, without any)) {
	switch {
	case len(s.Properties) > 0:
		others := map[string]any{}
		if s.Properties["nominalQuota"] != nil { // a quota has a name and an amount
			others = map[string]any{"name": "cpu", "nominalQuota": "5"}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			s.Properties[name].leaves(strings.TrimPrefix(path+"."+name, "."), func(path string, with, without any) {
				whole, part := maps.Clone(others), maps.Clone(others)
				if whole[name] = with; without != nil {
					part[name] = without
				}
				each(path, whole, part)
			})
		}
	case s.Items != nil:
		s.Items.leaves(path, func(path string, with, without any) {
			if without == nil {
				each(path, []any{with}, nil)
			} else {
				each(path, []any{with}, []any{without})
			}
		})
	case s.AdditionalProperties != nil || s.Type == "object":
		each(path, map[string]any{"key": "value"}, nil)
	case s.Type == "boolean":
		each(path, true, nil)
	case s.Type == "integer":
		each(path, 7, nil)
	case len(s.Enum) > 0:
		each(path, s.Enum[len(s.Enum)-1], nil)
	case strings.HasSuffix(path, "resources.name"):
		each(path, "memory", nil)
	default:
		each(path, "7", nil) // a name, and a quantity
	}
}

// Nothing of Kueue's published fields is accepted and ignored in silence: each field of each
// kind and version is refused, or becomes a part of the policy, or is named as doing nothing.
func TestEveryPublishedFieldIsReadRefusedOrNamed(t *testing.T) {
	t.Parallel()
	fields, read := 0, 0
	var named []string // fields, with their kind and version
	for _, d := range published(t) {
		for _, version := range d.Spec.Versions {
			kind, whole := d.Spec.Names.Kind, version.Schema.OpenAPIV3Schema
			parts := map[string]*schema{}
			for name, part := range whole.Properties {
				if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
					parts[name] = part
				}
			}
			load := func(fields any) (string, []string, error) {
				manifest := map[string]any{"apiVersion": "kueue.x-k8s.io/" + version.Name, "kind": kind, "metadata": map[string]any{"name": "x"}}
				maps.Copy(manifest, fields.(map[string]any))
				encoded, err := json.Marshal(manifest)
				if err != nil {
					t.Fatal(err)
				}
				object, err := kueue.ParseOne(encoded)
				policy, _ := json.Marshal(object.Policy)
				return string(policy), object.Notes, err
			}
			(&schema{Properties: parts}).leaves("", func(path string, with, without any) {
				fields++
				t.Run(kind+"/"+version.Name+"/"+path, func(t *testing.T) {
					policy, notes, err := load(with)
					before, _, _ := load(without)
					top := strings.Split(strings.TrimPrefix(path, "spec."), ".")[0]
					isNamed := slices.ContainsFunc(notes, func(note string) bool {
						return strings.Contains(note, "spec."+top+" does nothing") || strings.Contains(note, " \"x\" does nothing")
					})
					switch {
					case err != nil && strings.Contains(err.Error(), path[strings.LastIndex(path, ".")+1:]+": there is no such field"):
					case err != nil:
						t.Errorf("a valid value is refused: %v", err)
					case isNamed:
						named = append(named, kind+"/"+version.Name+"/"+path)
					case policy != before:
						read++
					default:
						t.Errorf("it is accepted and ignored in silence")
					}
				})
			})
		}
	}
	if fields < 100 || read < 120 {
		t.Errorf("of %d fields %d are read: the test does not look at what it should", fields, read)
	}
	slices.Sort(named)
	if diff := cmp.Diff([]string{"AdmissionCheck/v1beta1/spec.retryDelayMinutes"}, named); diff != "" {
		t.Errorf("named as doing nothing are (-want +got):\n%s", diff)
	}
}
