// Package unescaped encodes JSON without the escapes for HTML. Escaped, a manifest full of <, >
// and & would be several times as large as the submission whose size was checked.
//
// It is not for JSON within a page of HTML.
package unescaped

import (
	"bytes"
	"encoding/json"
)

// JSON returns a value as JSON. Maps have their keys in order, and characters stay as they are.
func JSON(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
