package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ClusterNameKey is the label that every cluster has: its name.
const ClusterNameKey = "muster.dev/cluster"

// ClusterSelector is in which clusters a gang may run, by their labels: Kubernetes'
// equality-based requirements, separated by commas, all of which must hold. They are
// KEY=VALUE (or KEY==VALUE), KEY!=VALUE, KEY (the label is there) and !KEY (it is not). As in
// Kubernetes, KEY!=VALUE holds where there is no such label. Empty selects all clusters.
type ClusterSelector string

// maxSelector bounds the text of a selector, in bytes.
const maxSelector = 500

// selectorKey is a key of a label, which may have a prefix; selectorValue a value.
var (
	selectorKey   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,250}[A-Za-z0-9])?$`)
	selectorValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)
)

// ValidSelectorKey reports whether a selector can ask for a label of the key.
func ValidSelectorKey(key string) bool { return selectorKey.MatchString(key) }

// requirement is one part of a selector. op is "=", "!=", "" for there, "!" for not there.
type requirement struct{ key, op, value string }

// ParseClusterSelector checks a selector and returns it in one form: without spaces, sorted,
// each requirement once.
func ParseClusterSelector(text string) (ClusterSelector, error) {
	if len(text) > maxSelector {
		return "", fmt.Errorf("has %d bytes; want at most %d", len(text), maxSelector)
	}
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	var parts []string
	for _, part := range strings.Split(text, ",") {
		r := parseRequirement(strings.TrimSpace(part))
		if !selectorKey.MatchString(r.key) || !selectorValue.MatchString(r.value) {
			return "", fmt.Errorf("%q: want KEY=VALUE, KEY!=VALUE, KEY or !KEY, separated by commas, such as gpu=h100,!shared", part)
		}
		parts = append(parts, r.String())
	}
	slices.Sort(parts)
	return ClusterSelector(strings.Join(slices.Compact(parts), ",")), nil
}

func parseRequirement(part string) requirement {
	if key, value, is := strings.Cut(part, "!="); is {
		return requirement{strings.TrimSpace(key), "!=", strings.TrimSpace(value)}
	}
	if key, value, is := strings.Cut(part, "="); is {
		return requirement{strings.TrimSpace(key), "=", strings.TrimSpace(strings.TrimPrefix(value, "="))}
	}
	if key, is := strings.CutPrefix(part, "!"); is {
		return requirement{key: strings.TrimSpace(key), op: "!"}
	}
	return requirement{key: part}
}

// String writes the requirement as ParseClusterSelector reads it.
func (r requirement) String() string {
	if r.op == "!" {
		return "!" + r.key
	}
	return r.key + r.op + r.value
}

func (r requirement) matches(value string, there bool) bool {
	switch r.op {
	case "=":
		return there && value == r.value
	case "!=":
		return !there || value != r.value
	case "!":
		return !there
	}
	return there
}

// Matches reports whether a cluster of that name and labels is selected. The selector is as
// ParseClusterSelector returns it.
func (s ClusterSelector) Matches(name string, labels map[string]string) bool {
	if s == "" {
		return true
	}
	for part := range strings.SplitSeq(string(s), ",") {
		r := parseRequirement(part)
		value, there := labels[r.key]
		if r.key == ClusterNameKey {
			value, there = name, true
		}
		if !r.matches(value, there) {
			return false
		}
	}
	return true
}
