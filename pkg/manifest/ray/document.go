package ray

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
)

// maxDepth bounds nesting. Pod templates go about 25 deep.
const maxDepth = 64

// mostValues bounds the texts, numbers, lists and objects of a document. Decoded, an
// empty object may take kilobytes, so bytes alone do not bound the memory. A
// manifest of the largest size that is written for people has fewer.
const mostValues = 20_000

// tooMany refuses a document for the number of its values.
func tooMany() error {
	return refuse("manifest", fmt.Sprintf("has more than %d values", mostValues), "split it, or move what it carries to a ConfigMap or an image")
}

// CheckValues refuses a tree that did not come from Tree for the number of its
// values. Errors wrap ErrInvalid.
func CheckValues(tree map[string]any) error {
	if countValues(tree, mostValues) < 0 {
		return tooMany()
	}
	return nil
}

// countValues returns how many more values there may be than value has.
func countValues(value any, left int) int {
	left--
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if left = countValues(item, left); left < 0 {
				break
			}
		}
	case []any:
		for _, item := range v {
			if left = countValues(item, left); left < 0 {
				break
			}
		}
	}
	return left
}

// parse returns the one document that the data holds. Numbers are json.Number.
func parse(data []byte) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, refuse("manifest", "is not UTF-8 text", "want one RayCluster, RayJob or RayService in JSON or YAML")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !json.Valid(data) {
		converted, err := fromYAML(data)
		if err != nil {
			return nil, err
		}
		data = converted
	}
	r := reader{tokens: json.NewDecoder(bytes.NewReader(data))}
	r.tokens.UseNumber()
	value, err := r.value()
	if err != nil {
		return nil, err
	}
	tree, isObject := value.(map[string]any)
	if !isObject {
		return nil, refuse("manifest", "is "+describe(value), "want an object with apiVersion, kind, metadata and spec")
	}
	return tree, nil
}

// checkBytes bounds the manifest, as submitted and as JSON.
func checkBytes(size int, as string) error {
	if size <= event.MaxSubmission {
		return nil
	}
	return refuse("manifest", fmt.Sprintf("has %d bytes%s", size, as),
		fmt.Sprintf("at most %d are accepted: move files and scripts to a ConfigMap or an image", event.MaxSubmission))
}

// reader builds a tree of a JSON text that is known to be valid.
type reader struct {
	tokens *json.Decoder
	path   trail
	values int // that were read
}

func (r *reader) value() (any, error) {
	token, err := r.tokens.Token()
	if err != nil {
		return nil, refuse(r.path.String(), "cannot be read: "+fault.Clip(err.Error()), "write it as JSON or YAML")
	}
	if r.values++; r.values > mostValues {
		return nil, tooMany()
	}
	if len(r.path) > maxDepth {
		return nil, refuse(r.path.String(), fmt.Sprintf("is nested more than %d deep", maxDepth), "flatten it")
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return r.object()
		}
		return r.array()
	case string:
		return t, r.checkText(t)
	}
	return token, nil
}

func (r *reader) object() (any, error) {
	object := map[string]any{}
	for r.tokens.More() {
		token, err := r.tokens.Token()
		key, isText := token.(string)
		if err != nil || !isText {
			return nil, refuse(r.path.String(), "cannot be read", "write it as JSON or YAML")
		}
		if _, twice := object[key]; twice {
			return nil, refuse(r.path.String(), "has the key "+fault.Quote(key)+" twice", "keep one")
		}
		if err := r.checkText(key); err != nil {
			return nil, err
		}
		r.path.enter(key)
		if object[key], err = r.value(); err != nil {
			return nil, err
		}
		r.path.leave()
	}
	_, err := r.tokens.Token() // the closing brace
	return object, err
}

func (r *reader) array() (any, error) {
	items := []any{}
	for i := 0; r.tokens.More(); i++ {
		r.path.enterItem(i)
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		r.path.leave()
	}
	_, err := r.tokens.Token() // the closing bracket
	return items, err
}

// checkText refuses what no database column of text can hold.
func (r *reader) checkText(text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return refuse(r.path.String(), "contains the character U+0000", "remove it")
	}
	return nil
}

// describe prints what kind of value it is.
func describe(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return strconv.FormatBool(value)
	case json.Number:
		return "the number " + fault.Clip(value.String())
	case []any:
		return "a list"
	}
	return "an object"
}
