package store

import (
	"encoding/json"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// Read parses one quantity and decodes another.
func Read(text string) (q apiresource.Quantity, err error) {
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return q, err
	}
	return apiresource.ParseQuantity(text)
}
