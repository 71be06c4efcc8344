package placement

import (
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// mostFilters bounds the number of filters; the least recently used one is evicted.
const mostFilters = 128

// filter is what a template demands of nodes besides resources: selector, affinity and
// tolerations. Equal templates share one. It caches the answer for every node.
type filter struct {
	key      string
	template workload.Template // only what a filter is about
	// refusals by node slot; "" where only resources decide.
	refusals []capacity.Refusal
	used     int64 // when it was last asked for, counted in uses
}

// eligible reports whether the node takes pods that pass the filter.
func (fl *filter) eligible(n *node) bool { return fl.refusals[n.slot] == "" }

// taintOf returns the taint for which the node refuses the pods, if it is one.
func (fl *filter) taintOf(n *node) (taint capacity.Taint, is bool) {
	if fl.refusals[n.slot] != capacity.RefusedTaint {
		return taint, false
	}
	return n.Untolerated(&fl.template)
}

// evaluate updates the answer for a node.
func (fl *filter) evaluate(n *node) {
	for len(fl.refusals) <= n.slot {
		fl.refusals = append(fl.refusals, "")
	}
	fl.refusals[n.slot] = n.Refuses(&fl.template)
}

// appendFilterKey writes what a filter is about, the same for equal templates.
func appendFilterKey(key []byte, t *workload.Template) []byte {
	switch len(t.NodeSelector) {
	case 0:
	case 1:
		for name, value := range t.NodeSelector {
			key = appendTexts(key, name, value)
		}
	default:
		for _, name := range slices.Sorted(maps.Keys(t.NodeSelector)) {
			key = appendTexts(key, name, t.NodeSelector[name])
		}
	}
	for _, term := range t.Affinity {
		key = append(key, '|')
		for i, requirements := range [][]workload.Requirement{term.Labels, term.Fields} {
			for _, r := range requirements {
				key = appendTexts(append(key, '?'+byte(i)), r.Key, r.Operator)
				key = appendTexts(key, r.Values...)
			}
		}
	}
	for _, tolerated := range t.Tolerations {
		key = appendTexts(append(key, '~'), tolerated.Key, tolerated.Operator, tolerated.Value, tolerated.Effect)
	}
	return key
}

func appendTexts(key []byte, texts ...string) []byte {
	for _, text := range texts {
		key = strconv.AppendQuote(key, text)
	}
	return key
}

func appendAmount(key []byte, amount int64) []byte { return strconv.AppendInt(key, amount, 36) }
