package workload

import (
	"encoding/json"
	"fmt"

	"muster.dev/muster/pkg/spec/resource"
)

// Resources are amounts that are written as Kubernetes' quantities.
type Resources map[resource.Name]Quantity

// Quantity is an amount as it was written.
type Quantity string

// UnmarshalJSON accepts a number, too, as Kubernetes does.
func (q *Quantity) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		var number json.Number
		if err := json.Unmarshal(data, &number); err != nil {
			return fmt.Errorf("%s is no amount; want a number, or a text such as \"16Gi\"", data)
		}
		text = number.String()
	}
	*q = Quantity(text)
	return nil
}
