package ray

import (
	"encoding/json"
	"fmt"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// locate finds the value that the decoder refused. The decoder names fields without the
// places in lists, and the value by its type, such as "string" or "number 1.5". It returns
// the whole path and the value; what it does not find stays as the decoder named it.
func locate(tree map[string]any, path, is string) (where, value string) {
	fields := strings.Split(path, ".")
	if at, found := search(tree, fields, "", is); found != nil {
		return at, *found
	}
	return path, fault.Clip(is)
}

// search walks the fields below a node, into each item of a list.
func search(node any, fields []string, at, is string) (where string, value *string) {
	switch n := node.(type) {
	case []any:
		for i, item := range n {
			if where, value = search(item, fields, fmt.Sprintf("%s[%d]", at, i), is); value != nil {
				return where, value
			}
		}
		if len(fields) > 0 {
			return "", nil
		}
	case map[string]any:
		if len(fields) > 0 {
			return search(n[fields[0]], fields[1:], strings.TrimPrefix(at+"."+fields[0], "."), is)
		}
	}
	if len(fields) > 0 {
		return "", nil
	}
	if text, matches := refused(node, is); matches {
		return at, &text
	}
	return "", nil
}

// refused reports whether the decoder calls a value so, and shows it.
func refused(value any, is string) (shown string, matches bool) {
	switch v := value.(type) {
	case string:
		return fault.Quote(v), is == "string"
	case json.Number:
		return fault.Clip(v.String()), is == "number" || is == "number "+v.String()
	case bool:
		return fmt.Sprint(v), is == "bool"
	case []any:
		return "a list", is == "array"
	case map[string]any:
		return "an object", is == "object"
	}
	return "", false
}
