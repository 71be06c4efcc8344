package kube

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/spec/fault"
)

// These functions check names as the API server does, but on submission: a name that it
// would refuse must not be stored, shown or sent before that. Each returns the reason
// why a value is invalid, or an empty text.

// kindName is a kind whose lower-case form is a DNS label, and shorter, because the names
// of pod sets, which are labels, include it.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,49}$`)

// BadKind checks the kind of an object.
func BadKind(kind string) string {
	if !kindName.MatchString(kind) {
		return "want at most 50 letters and digits, the first a capital"
	}
	return ""
}

// BadAPIVersion checks a version, with its group unless it is the core group.
func BadAPIVersion(text string) string {
	group, version, grouped := strings.Cut(text, "/")
	if !grouped {
		group, version = "", text
	}
	if len(validation.IsDNS1035Label(version)) > 0 || grouped && len(validation.IsDNS1123Subdomain(group)) > 0 {
		return "want a version such as v1 or apps/v1"
	}
	return ""
}

// BadName checks the name of an object of a kind of the group.
func BadName(group, name string) string {
	if group == "rbac.authorization.k8s.io" { // its names may have colons
		if len(name) > validation.DNS1123SubdomainMaxLength || BadText(name) != "" {
			return fmt.Sprintf("want at most %d printable characters", validation.DNS1123SubdomainMaxLength)
		}
		return first(content.IsPathSegmentName(name))
	}
	return first(validation.IsDNS1123Subdomain(name))
}

// BadNamespace checks the name of a namespace.
func BadNamespace(name string) string { return first(validation.IsDNS1123Label(name)) }

// BadLabels checks the labels and annotations of an object's metadata. It returns the
// path of the first fault within it, what is there and the reason.
func BadLabels(metadata map[string]any) (where, what, why string) {
	for _, field := range []string{"labels", "annotations"} {
		if metadata[field] == nil {
			continue
		}
		list, isMap := metadata[field].(map[string]any)
		if !isMap {
			return field, "is " + shown(metadata[field]), "want an object of texts"
		}
		size := 0
		for _, key := range slices.Sorted(maps.Keys(list)) {
			value := list[key]
			text, isText := value.(string)
			size += len(key) + len(text)
			switch {
			case first(validation.IsQualifiedName(key)) != "" && first(validation.IsQualifiedName(strings.ToLower(key))) != "":
				return fmt.Sprintf("%s[%s]", field, fault.Clip(fmt.Sprintf("%q", key))), "cannot be a key", first(validation.IsQualifiedName(key))
			case !isText:
				return fmt.Sprintf("%s[%s]", field, key), "is " + shown(value), "want a text, such as \"7\" in quotes"
			case field == "labels" && first(validation.IsValidLabelValue(text)) != "":
				return fmt.Sprintf("%s[%s]", field, key), "is " + fault.Quote(text), first(validation.IsValidLabelValue(text))
			}
		}
		if size > mostAnnotations {
			return field, fmt.Sprintf("has %d bytes", size), fmt.Sprintf("want at most %d bytes together", mostAnnotations)
		}
	}
	return "", "", ""
}

// shown is a value that is not of the wanted type, for a refusal.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return fault.Quote(v)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fault.Clip(fmt.Sprint(value))
}

// mostAnnotations is the API server's bound on all annotations of an object.
const mostAnnotations = 256 << 10

// BadText checks a text that is printed unescaped: it may not move a terminal's cursor,
// begin a line or change the direction of writing.
func BadText(text string) string {
	if !utf8.ValidString(text) {
		return "want UTF-8 text"
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return "want printable characters alone"
		}
	}
	return ""
}

func first(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return faults[0]
}
