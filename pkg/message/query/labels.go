package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// LabelOperator is how a label is compared.
type LabelOperator string

// The operators of label selectors.
const (
	LabelIn     LabelOperator = "In"     // it has one of Values
	LabelNotIn  LabelOperator = "NotIn"  // it has none of Values, or is not there
	LabelExists LabelOperator = "Exists" // it is there
	LabelAbsent LabelOperator = "DoesNotExist"
)

// LabelRequirement is a condition on a label of the submitted manifest. Of an AppWrapper the
// labels of its first object count.
type LabelRequirement struct {
	Key      string        `json:"key"`
	Operator LabelOperator `json:"operator"`
	Values   []string      `json:"values,omitempty"`
}

// Bounds of a selector: of its text, and of the conditions and values that it may have.
const (
	longestSelector  = 4 << 10
	mostRequirements = 32
	mostLabelValues  = 256
	longestLabelKey  = 253 + 1 + 63 // a prefix, a slash, and a name
	longestLabel     = 63
)

// ErrNotSelected is wrapped when the answer has workloads of all labels.
var ErrNotSelected = errors.New("this queue-manager is older and does not select by labels; replace it, or select by queue, namespace or phase")

// ParseSelector reads a label selector as kubectl takes it, such as "team=a,stage in (dev,test),!old".
func ParseSelector(text string) ([]LabelRequirement, error) {
	if len(text) > longestSelector {
		return nil, fmt.Errorf("label selector of %d bytes: want %d at most", len(text), longestSelector)
	}
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("label selector %.80q: %w; want one as kubectl takes it, such as team=a,stage!=test", text, err)
	}
	operators := map[selection.Operator]LabelOperator{
		selection.In: LabelIn, selection.Equals: LabelIn, selection.DoubleEquals: LabelIn,
		selection.NotIn: LabelNotIn, selection.NotEquals: LabelNotIn,
		selection.Exists: LabelExists, selection.DoesNotExist: LabelAbsent,
	}
	requirements, _ := parsed.Requirements()
	all := make([]LabelRequirement, 0, len(requirements))
	for _, r := range requirements {
		operator, known := operators[r.Operator()]
		if !known {
			return nil, fmt.Errorf("label selector %.80q: operator %q of label %q: want =, !=, in, notin, a label alone, or ! before one", text, r.Operator(), r.Key())
		}
		requirement := LabelRequirement{Key: r.Key(), Operator: operator}
		if operator == LabelIn || operator == LabelNotIn {
			requirement.Values = slices.Sorted(slices.Values(r.ValuesUnsorted()))
		}
		all = append(all, requirement)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("label selector %.80q has no condition: want one such as team=a", text)
	}
	return all, CheckLabels(all)
}

// CheckLabels refuses requirements that no selector has, or too many.
func CheckLabels(requirements []LabelRequirement) error {
	if len(requirements) > mostRequirements {
		return fmt.Errorf("%d conditions on labels: want %d at most", len(requirements), mostRequirements)
	}
	values := 0
	for _, r := range requirements {
		takesValues := r.Operator == LabelIn || r.Operator == LabelNotIn
		switch {
		case r.Key == "" || len(r.Key) > longestLabelKey:
			return fmt.Errorf("label %.80q: want a key of 1 to %d characters", r.Key, longestLabelKey)
		case !takesValues && r.Operator != LabelExists && r.Operator != LabelAbsent:
			return fmt.Errorf("label %q: operator %.20q: want %s, %s, %s or %s", r.Key, r.Operator, LabelIn, LabelNotIn, LabelExists, LabelAbsent)
		case takesValues != (len(r.Values) > 0):
			return fmt.Errorf("label %q: operator %s has %d values: want values with %s and %s alone", r.Key, r.Operator, len(r.Values), LabelIn, LabelNotIn)
		}
		for _, value := range r.Values {
			if len(value) > longestLabel {
				return fmt.Errorf("label %q: value %.80q: want %d characters at most", r.Key, value, longestLabel)
			}
		}
		if values += len(r.Values); values > mostLabelValues {
			return fmt.Errorf("more than %d values in the conditions on labels", mostLabelValues)
		}
	}
	return nil
}

// SelectorText writes requirements as ParseSelector reads them.
func SelectorText(requirements []LabelRequirement) string {
	parts := make([]string, len(requirements))
	for i, r := range requirements {
		switch r.Operator {
		case LabelIn:
			parts[i] = r.Key + " in (" + strings.Join(r.Values, ",") + ")"
		case LabelNotIn:
			parts[i] = r.Key + " notin (" + strings.Join(r.Values, ",") + ")"
		case LabelExists:
			parts[i] = r.Key
		case LabelAbsent:
			parts[i] = "!" + r.Key
		}
	}
	return strings.Join(parts, ",")
}
