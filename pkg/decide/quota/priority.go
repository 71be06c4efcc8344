package quota

import (
	"fmt"
	"slices"
	"strings"
)

// PriorityClass names a priority (Kueue's WorkloadPriorityClass).
type PriorityClass struct {
	Name        string `json:"name"`
	Value       int32  `json:"value"`
	Description string `json:"description,omitempty"`
}

// Priority returns the value of a WorkloadPriorityClass. The error names which
// there are.
func (c Config) Priority(class string) (int32, error) {
	names := make([]string, len(c.Priorities))
	for i, known := range c.Priorities {
		if known.Name == class {
			return known.Value, nil
		}
		names[i] = known.Name
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("priority class %q does not exist; there are none", class)
	}
	slices.Sort(names)
	return 0, fmt.Errorf("priority class %q does not exist; there are: %s", class, strings.Join(names, ", "))
}
