package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/spec/fault"
)

// BadMetadata checks the labels, annotations and names of everything in an object that
// has its own metadata, such as pod templates. It returns the path of the first fault,
// what is there and the reason.
func BadMetadata(object map[string]any) (where, what, why string) { return badWithin("", object) }

func badWithin(where string, node any) (at, what, why string) {
	switch n := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			within := strings.TrimPrefix(where+"."+fault.Clip(key), ".")
			if metadata, isMap := n[key].(map[string]any); isMap && key == "metadata" {
				if field, what, why := badMetadata(metadata); why != "" {
					return within + "." + field, what, why
				}
			}
			if at, what, why = badWithin(within, n[key]); why != "" {
				return at, what, why
			}
		}
	case []any:
		for i, item := range n {
			if at, what, why = badWithin(fmt.Sprintf("%s[%d]", where, i), item); why != "" {
				return at, what, why
			}
		}
	}
	return "", "", ""
}

func badMetadata(metadata map[string]any) (field, what, why string) {
	for _, field := range []string{"name", "generateName", "namespace"} {
		text, _ := metadata[field].(string)
		if len(text) > validation.DNS1123SubdomainMaxLength {
			return field, fmt.Sprintf("has %d bytes", len(text)), validation.MaxLenError(validation.DNS1123SubdomainMaxLength)
		}
		if why := BadText(text); why != "" {
			return field, "is " + fault.Quote(text), why
		}
	}
	return BadLabels(metadata)
}
