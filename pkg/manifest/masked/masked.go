// Package masked hides secrets in a manifest before people see it.
//
// What is hidden: the data of Secrets, also of those in an AppWrapper; values of environment
// variables, annotations and other keys whose name is that of a secret; arguments such as
// --token=VALUE; and texts that are secrets by their form, such as private keys and the password
// in a URL. A manifest is written by its user, so a secret under an innocent name that looks like
// any other text is shown: the page is for those who may see the workload, and for no others.
//
// It does not change what is stored or created.
package masked

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"muster.dev/muster/pkg/manifest/unescaped"
)

// Mask is what is shown instead of a secret.
const Mask = "(masked)"

// lastApplied is where kubectl keeps the whole object as a text.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// deepest is how deep a manifest may be nested; below, everything is hidden.
const deepest = 100

// JSON returns a manifest with its secrets masked, and how many there were.
func JSON(manifest []byte) (shown []byte, hidden int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(manifest))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, 0, fmt.Errorf("read a manifest of %d bytes: %w", len(manifest), err)
	}
	m := masker{}
	if shown, err = unescaped.JSON(m.value(document, 0)); err != nil {
		return nil, 0, fmt.Errorf("write a masked manifest: %w", err)
	}
	return shown, m.hidden, nil
}

type masker struct{ hidden int }

func (m *masker) mask() any {
	m.hidden++
	return Mask
}

func (m *masker) value(value any, depth int) any {
	if depth > deepest {
		return m.mask()
	}
	switch v := value.(type) {
	case map[string]any:
		return m.object(v, depth)
	case []any:
		return m.list(v, depth)
	case string:
		return m.text(v)
	}
	return value
}

func (m *masker) object(object map[string]any, depth int) any {
	kind, _ := object["kind"].(string)
	name, _ := object["name"].(string)
	for key, value := range object {
		switch list, _ := value.([]any); {
		case strings.EqualFold(kind, "Secret") && (key == "data" || key == "stringData"):
			object[key] = m.all(value)
		case isScalar(value) && (key == lastApplied || isSecret(key) || key == "value" && isSecret(name)):
			object[key] = m.mask()
		case len(list) > 0 && isScalar(list[0]) && isSecret(key):
			object[key] = m.mask()
		default:
			object[key] = m.value(value, depth+1)
		}
	}
	return object
}

// isScalar reports whether a value is a text or a number.
func isScalar(value any) bool {
	switch value.(type) {
	case string, json.Number:
		return true
	}
	return false
}

// all masks each value of the data of a Secret, and keeps the keys.
func (m *masker) all(value any) any {
	data, is := value.(map[string]any)
	if !is {
		return m.mask()
	}
	for key := range data {
		data[key] = m.mask()
	}
	return data
}

// list masks the argument after a flag such as --token, too.
func (m *masker) list(list []any, depth int) any {
	follows := false
	for i, value := range list {
		text, is := value.(string)
		if is && follows && !strings.HasPrefix(text, "-") {
			list[i] = m.mask()
		} else {
			list[i] = m.value(value, depth+1)
		}
		follows = is && strings.HasPrefix(text, "-") && !strings.ContainsAny(text, "= \n") && isSecret(text)
	}
	return list
}

var (
	// forms are secrets by how they look.
	forms = []*regexp.Regexp{
		regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)`),
		regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`),
		regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`),
		regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-)[\w-]{16,}`),
		regexp.MustCompile(`(?i)\b(bearer|basic)[ \t]+[\w.~+/=-]{8,}`),
	}
	password = regexp.MustCompile(`(\b[a-zA-Z][\w+.-]*://[^\s/@:"']*:)([^\s/@"']+)(@)`)
)

// text masks the parts of a text that are secrets.
func (m *masker) text(text string) string {
	for _, form := range forms {
		text = form.ReplaceAllStringFunc(text, func(string) string { m.hidden++; return Mask })
	}
	text = password.ReplaceAllStringFunc(text, func(found string) string {
		m.hidden++
		return password.ReplaceAllString(found, "${1}"+Mask+"${3}")
	})
	return m.assignments(text)
}
