package query

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/spec/resource"
)

// NodeShape is what a node has that is like no present one.
type NodeShape struct {
	// Cluster may be left out where there is one only.
	Cluster string `json:"cluster,omitempty"`
	// Allocatable is in the units of answers: thousandths of cores, bytes. Without pods it has
	// room for 110.
	Allocatable resource.List     `json:"allocatable"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// Bounds of a shape.
const (
	maxShapeParts  = 64 // resources, and labels
	maxShapeAmount = 1 << 50
	maxShapeText   = 317 // the longest name of a label
)

// Check refuses a shape that no node has.
func (s *NodeShape) Check() error {
	if err := checkAmounts(s.Allocatable); err != nil {
		return err
	}
	if len(s.Labels) > maxShapeParts {
		return fmt.Errorf("%d labels: want at most %d", len(s.Labels), maxShapeParts)
	}
	for key, value := range s.Labels {
		if key == "" || len(key) > maxShapeText || len(value) > maxShapeText {
			return fmt.Errorf("label %.80q: want a name, and a value, of at most %d characters", key, maxShapeText)
		}
	}
	return nil
}

func checkAmounts(amounts resource.List) error {
	if len(amounts) == 0 || len(amounts) > maxShapeParts {
		return fmt.Errorf("%d resources: want 1 to %d", len(amounts), maxShapeParts)
	}
	for name, amount := range amounts {
		if name == "" || len(name) > maxShapeText || amount < 0 || amount > maxShapeAmount {
			return fmt.Errorf("%.80q of %d: want the name of a resource, and 0 to %d", string(name), amount, int64(maxShapeAmount))
		}
	}
	return nil
}

// ParseAmounts reads amounts of resources that people write: cpu=96,memory=1Ti,nvidia.com/gpu=8.
func ParseAmounts(text string) (resource.List, error) {
	amounts := resource.List{}
	for part := range strings.SplitSeq(text, ",") {
		name, amount, has := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); !has || name == "" {
			return nil, fmt.Errorf("%.80q: want RESOURCE=AMOUNT, such as nvidia.com/gpu=8", part)
		}
		number, err := resource.Parse(resource.Name(name), strings.TrimSpace(amount))
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", part, err)
		}
		amounts[resource.Name(name)] = number
	}
	return amounts, nil
}
