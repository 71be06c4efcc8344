package quota

import (
	"bytes"
	"encoding/json"
	"fmt"

	"muster.dev/muster/pkg/resource"
)

// strict decodes JSON and refuses fields that are not known.
func strict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// amount reads a quantity, written as text or number; nil when there is none.
func amount(name resource.Name, field string, raw json.RawMessage) (*int64, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
	}
	parsed, err := resource.Parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &parsed, nil
}
