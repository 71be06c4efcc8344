package placement

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/workload"
)

// mostFilters bounds how many filters are kept; the one least recently used
// goes.
const mostFilters = 128

// filter is what a template asks of nodes besides resources: selector, affinity
// and tolerations. Templates that ask the same share one. It knows every node's
// answer.
type filter struct {
	key      string
	template workload.Template // only what a filter is about
	// refusals by node slot; "" where only resources decide.
	refusals []capacity.Refusal
	used     int64 // when it was last asked for, counted in uses
}

// eligible reports whether the node takes pods that pass the filter.
func (fl *filter) eligible(n *node) bool { return fl.refusals[n.slot] == "" }

// judge asks a node anew.
func (fl *filter) judge(n *node) {
	for len(fl.refusals) <= n.slot {
		fl.refusals = append(fl.refusals, "")
	}
	fl.refusals[n.slot] = n.Refuses(&fl.template)
}

// filterOf returns the filter of a template. A filter that is new asks every
// node once and splits the classes whose nodes it tells apart.
func (f *Fleet) filterOf(t *workload.Template) *filter {
	f.uses++
	f.scratch = appendFilterKey(f.scratch[:0], t)
	if known := f.filterByKey[string(f.scratch)]; known != nil {
		known.used = f.uses
		return known
	}
	fl := &filter{
		key: string(f.scratch), used: f.uses, refusals: make([]capacity.Refusal, len(f.slots)),
		template: workload.Template{NodeSelector: maps.Clone(t.NodeSelector), Affinity: t.Affinity, Tolerations: t.Tolerations},
	}
	for _, n := range f.slots {
		if n != nil && n.present {
			fl.judge(n)
		}
	}
	at := f.vacate()
	f.filterByKey[fl.key] = fl
	appended := at == len(f.filters)
	if appended {
		f.filters = append(f.filters, fl)
	} else {
		f.filters[at] = fl
	}
	f.split(at, fl, appended)
	return fl
}

// vacate returns where a filter more goes: behind all others or, when there are
// enough, in the place of the one that was not asked for the longest, which is
// forgotten.
func (f *Fleet) vacate() int {
	if len(f.filters) < mostFilters {
		return len(f.filters)
	}
	oldest := slices.MinFunc(f.filters, func(a, b *filter) int { return cmp.Compare(a.used, b.used) })
	if oldest.used > f.since { // the gang at hand asks for it
		return len(f.filters)
	}
	delete(f.filterByKey, oldest.key)
	return slices.Index(f.filters, oldest)
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

// current reports whether a filter is still kept up to date.
func (f *Fleet) current(fl *filter) bool { return fl != nil && f.filterByKey[fl.key] == fl }
