package placement

import "slices"

// mergeBinds makes one rule of those that bind the same kind to one domain of a label.
func (p *problem) mergeBinds() {
	merged := p.rules[:0:0]
	for _, r := range p.rules {
		if r.kind == bind {
			merged = slices.DeleteFunc(merged, func(m rule) bool {
				same := m.kind == bind && m.key == r.key && slices.ContainsFunc(m.kinds, func(k int) bool { return slices.Contains(r.kinds, k) })
				if same {
					r.kinds, r.owners = append(slices.Clone(m.kinds), r.kinds...), append(slices.Clone(m.owners), r.owners...)
				}
				return same
			})
			slices.Sort(r.kinds)
			r.kinds = slices.Compact(r.kinds)
		}
		merged = append(merged, r)
	}
	p.rules = merged
}

// ruled reports whether a rule concerns a kind's own pods.
func (p *problem) ruled(kind int) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.kind != prefer && (len(r.kinds) == 1 || r.kind == bind || r.kinds[0] == r.kinds[1]) && slices.Contains(r.kinds, kind)
	})
}

// bound returns the rule that binds a kind to one domain, nil when there is none.
func (p *problem) bound(kind int) *rule {
	for i, r := range p.rules {
		if r.kind == bind && slices.Contains(r.kinds, kind) {
			return &p.rules[i]
		}
	}
	return nil
}
