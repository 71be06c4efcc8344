package observed

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// SetKinds records the kinds that the cluster serves, sorted; nil is unknown. The caller does
// not change them afterwards.
func (p *Cache) SetKinds(kinds []workload.ObjectKind) { p.kinds = kinds }

// Kinds returns the kinds that the cluster serves; nil is unknown.
func (p *Cache) Kinds() []workload.ObjectKind { return p.kinds }

// SameKinds reports whether the cluster serves these kinds, as far as that is known.
func (p *Cache) SameKinds(kinds []workload.ObjectKind) bool { return slices.Equal(p.kinds, kinds) }
