package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// LabelSelector is Kubernetes'. All of its requirements must hold; without any it selects
// everything.
type LabelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []LabelExpression `json:"matchExpressions,omitempty"`
}

// LabelExpression is a requirement of a LabelSelector.
type LabelExpression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Operators of a LabelExpression.
const (
	opIn           = "In"
	opNotIn        = "NotIn"
	opExists       = "Exists"
	opDoesNotExist = "DoesNotExist"
)

// Matches reports whether the labels satisfy the selector, as Kubernetes defines it: NotIn and
// DoesNotExist hold of an object without the label.
func (s *LabelSelector) Matches(labels map[string]string) bool { return s.Unmet(labels) == "" }

// Unmet returns which requirement the labels do not meet, the first by its place; empty when
// they meet all.
func (s *LabelSelector) Unmet(labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if e := (LabelExpression{key, opIn, []string{s.MatchLabels[key]}}); !e.matches(labels) {
			return e.unmet(labels)
		}
	}
	for i := range s.MatchExpressions {
		if e := &s.MatchExpressions[i]; !e.matches(labels) {
			return e.unmet(labels)
		}
	}
	return ""
}

// shownValues bounds the values that a reason names.
const shownValues = 3

func (e *LabelExpression) unmet(labels map[string]string) string {
	has := fmt.Sprintf("it has no label %q", e.Key)
	if value, ok := labels[e.Key]; ok {
		has = fmt.Sprintf("it has %s=%s", e.Key, value)
	}
	shown := strings.Join(e.Values[:min(len(e.Values), shownValues)], ", ")
	if more := len(e.Values) - shownValues; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	want := e.Operator
	if shown != "" {
		want += " (" + shown + ")"
	}
	return fmt.Sprintf("%s, and the selector wants %s %s", has, e.Key, want)
}

func (e *LabelExpression) matches(labels map[string]string) bool {
	value, ok := labels[e.Key]
	switch e.Operator {
	case opIn:
		return ok && slices.Contains(e.Values, value)
	case opNotIn:
		return !ok || !slices.Contains(e.Values, value)
	case opExists:
		return ok
	case opDoesNotExist:
		return !ok
	}
	return false // Validate refuses others
}

func (s *LabelSelector) empty() bool {
	return s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// Selector returns the namespaceSelector of a ClusterQueue; nil when all namespaces may use
// the queue.
func (q *ClusterQueue) Selector() *LabelSelector {
	if q.NamespaceSelector.empty() {
		return nil
	}
	return q.NamespaceSelector
}

// Bounds of a selector, which is compared with the labels of every namespace.
const (
	maxRequirements   = 100
	maxSelectorValues = 1000
	maxSelectorText   = 317 // a key of Kubernetes with its prefix
)

func (v *validation) selector(path string, s *LabelSelector) {
	if s == nil {
		return
	}
	if n := len(s.MatchLabels) + len(s.MatchExpressions); n > maxRequirements {
		v.faults.Add(path, "has %d requirements; want at most %d", n, maxRequirements)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		v.label(path+".matchLabels", key, s.MatchLabels[key])
	}
	for i, e := range s.MatchExpressions {
		at := fault.Index(path+".matchExpressions", i)
		v.label(at+".key", e.Key)
		switch e.Operator {
		case opIn, opNotIn:
			if len(e.Values) == 0 || len(e.Values) > maxSelectorValues {
				v.faults.Add(at+".values", "has %d values; operator %s wants 1 to %d", len(e.Values), e.Operator, maxSelectorValues)
				continue
			}
			v.label(at+".values", e.Key, e.Values...)
		case opExists, opDoesNotExist:
			if len(e.Values) > 0 {
				v.faults.Add(at+".values", "has %d values; operator %s wants none", len(e.Values), e.Operator)
			}
		default:
			v.faults.Add(at+".operator", "%q: want one of %s", e.Operator, strings.Join([]string{opIn, opNotIn, opExists, opDoesNotExist}, ", "))
		}
	}
}

func (v *validation) label(path, key string, values ...string) {
	if key == "" {
		v.faults.Add(path, "has no key; want that of a label")
	}
	for _, text := range append([]string{key}, values...) {
		v.line(path, text, maxSelectorText)
	}
}
