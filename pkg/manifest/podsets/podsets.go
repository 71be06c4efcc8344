// Package podsets reads plain pod sets: pods by template and number, with objects
// beside them, for those whose gang is neither a Ray object nor wrapped. Each pod
// set becomes an indexed Job, and all of it an AppWrapper, so that everything that
// holds for AppWrappers holds here.
//
// It is not for what an AppWrapper may wrap (package appwrapper). The package is
// pure.
package podsets

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

// APIVersion and Kind are what a document of pod sets calls itself.
const (
	APIVersion = "muster.dev/v1"
	Kind       = "PodSets"
)

// ErrInvalid is wrapped by the errors of Wrapped.
var ErrInvalid = errors.New("invalid PodSets")

// Is reports whether the document calls itself pod sets.
func Is(tree map[string]any) bool { return tree["kind"] == Kind }

// Paths is where in the document something is that an error finds in the
// AppWrapper. The zero value is of an AppWrapper that was written as one.
type Paths struct{ replacer *strings.Replacer }

// Of returns the error in terms of the document; nil for nil.
func (p Paths) Of(err error) error {
	if err == nil || p.replacer == nil {
		return err
	}
	return &located{p.replacer.Replace(err.Error()), err}
}

// Texts returns messages about the AppWrapper in terms of the document.
func (p Paths) Texts(messages []string) []string {
	if p.replacer == nil {
		return messages
	}
	texts := make([]string, len(messages))
	for i, text := range messages {
		texts[i] = p.replacer.Replace(text)
	}
	return texts
}

// located is the same error about another document.
type located struct {
	text  string
	cause error
}

func (l *located) Error() string { return l.text }

func (l *located) Unwrap() error { return l.cause }

// Wrapped returns the document as an AppWrapper of v1beta2: its objects in order,
// then a Job for each pod set.
func Wrapped(tree map[string]any) (map[string]any, Paths, error) {
	metadata, spec, err := parts(tree)
	if err != nil {
		return nil, Paths{}, err
	}
	var components []any
	var paths []string
	objects, err := list(spec, "objects")
	if err != nil {
		return nil, Paths{}, err
	}
	for i, object := range objects {
		paths = append(paths, fmt.Sprintf("spec.components[%d].template", i), fmt.Sprintf("spec.objects[%d]", i))
		components = append(components, map[string]any{"template": object})
	}
	sets, err := list(spec, "podSets")
	switch {
	case err != nil:
		return nil, Paths{}, err
	case len(sets) == 0:
		return nil, Paths{}, invalid("spec.podSets", "is empty", "want at least one pod set")
	}
	names := map[string]int{}
	for i, value := range sets {
		where := fmt.Sprintf("spec.podSets[%d]", i)
		job, name, err := jobOf(where, text(metadata, "name"), value)
		if err != nil {
			return nil, Paths{}, err
		}
		if first, twice := names[name]; twice {
			return nil, Paths{}, invalid(where+".name", fmt.Sprintf("is %q, as that of spec.podSets[%d] is", name, first), "give each a name of its own")
		}
		names[name] = i
		in := fmt.Sprintf("spec.components[%d].template", len(components))
		paths = append(paths, in+".spec.template", where+".template", in, where)
		components = append(components, map[string]any{"template": job})
	}
	return map[string]any{
		"apiVersion": appwrapper.Group + "/" + appwrapper.V1beta2, "kind": appwrapper.Kind,
		"metadata": metadata, "spec": map[string]any{"components": components},
	}, Paths{strings.NewReplacer(paths...)}, nil
}

// parts checks the outermost fields.
func parts(tree map[string]any) (metadata, spec map[string]any, err error) {
	if tree["apiVersion"] != APIVersion {
		return nil, nil, invalid("apiVersion", fmt.Sprintf("is %.80q", fmt.Sprint(tree["apiVersion"])), "want "+APIVersion)
	}
	if err := only("", tree, "apiVersion", "kind", "metadata", "spec"); err != nil {
		return nil, nil, err
	}
	metadata, isMap := tree["metadata"].(map[string]any)
	if !isMap || text(metadata, "name") == "" {
		return nil, nil, invalid("metadata.name", "is missing", "want a name: the Jobs of the pod sets have it in theirs")
	}
	spec, isMap = tree["spec"].(map[string]any)
	if !isMap {
		return nil, nil, invalid("spec", "is missing", "want podSets")
	}
	return metadata, spec, only("spec.", spec, "podSets", "objects")
}

// jobOf makes the Job of a pod set: as many pods as it has, all at once, none of
// which is created again.
func jobOf(where, owner string, value any) (job map[string]any, name string, err error) {
	set, isMap := value.(map[string]any)
	if !isMap {
		return nil, "", invalid(where, "is no object", "want name, count and template")
	}
	if err := only(where+".", set, "name", "count", "template"); err != nil {
		return nil, "", err
	}
	name = text(set, "name")
	if !workload.ValidName(name) {
		return nil, "", invalid(where+".name", fmt.Sprintf("is %.80q", name), "want at most 63 lower-case letters, digits and dashes")
	}
	count, err := countOf(where, set)
	if err != nil {
		return nil, "", err
	}
	template, isMap := set["template"].(map[string]any)
	pod, hasSpec := template["spec"].(map[string]any)
	if !isMap || !hasSpec {
		return nil, "", invalid(where+".template.spec", "is missing", "want the spec of a pod")
	}
	pod = maps.Clone(pod)
	if pod["restartPolicy"] == nil {
		pod["restartPolicy"] = "Never"
	}
	template = maps.Clone(template)
	template["spec"] = pod
	return map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": owner + "-" + name},
		"spec": map[string]any{
			"completionMode": "Indexed", "parallelism": count, "completions": count, "backoffLimit": 0, "template": template,
		},
	}, name, nil
}

func countOf(where string, set map[string]any) (int, error) {
	encoded, err := json.Marshal(set["count"])
	count := 0
	if err == nil {
		err = json.Unmarshal(encoded, &count)
	}
	if err != nil || set["count"] == nil || count < 1 || count > ray.MaxPods {
		return 0, invalid(where+".count", fmt.Sprintf("is %.80s", encoded), fmt.Sprintf("want a whole number from 1 to %d", ray.MaxPods))
	}
	return count, nil
}

// only refuses fields that have no meaning.
func only(where string, object map[string]any, fields ...string) error {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(fields, field) {
			return invalid(fmt.Sprintf("%s%.80s", where, field), "is no field", "want "+strings.Join(fields, ", "))
		}
	}
	return nil
}

func list(spec map[string]any, field string) ([]any, error) {
	value, given := spec[field]
	items, isList := value.([]any)
	if given && value != nil && !isList {
		return nil, invalid("spec."+field, "is no list", "want a list")
	}
	return items, nil
}

func text(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}

func invalid(where, what, remedy string) error {
	return fmt.Errorf("%w: %s: %s; %s", ErrInvalid, where, what, remedy)
}
