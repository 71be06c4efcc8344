package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// patience is how many commits may fail one after the other with an SQLSTATE that passes by
// waiting, before a part of the commit may be its cause.
const patience = 3

// persisting counts a failed commit. It returns the SQLSTATE when waiting has not helped, or has
// not helped before with something that is among the changes; else the empty string.
func (m *Memory) persisting(cause error, changes state.Changes, now time.Time) string {
	code := store.Passing(cause)
	if code != m.persistent {
		m.persistent, m.persisted = code, 0
	}
	m.persisted++
	if code == "" || m.persisted <= patience && !m.triedBefore(code, changes, now) {
		return ""
	}
	return code
}

// triedBefore reports whether something that was in quarantine until a time, for the same SQLSTATE
// and not long ago, is among the changes.
func (m *Memory) triedBefore(code string, changes state.Changes, now time.Time) bool {
	until := func(a state.Quarantined) bool {
		before := m.quarantined[keyOf(a)]
		return !before.Until.IsZero() && recent(before, now) && strings.Contains(before.Why, "SQLSTATE "+code)
	}
	return slices.ContainsFunc(changes.Added, func(a state.Added) bool { return until(state.Quarantined{Workload: a.ID}) }) ||
		slices.ContainsFunc(changes.Updated, func(r workload.Record) bool { return until(state.Quarantined{Workload: r.ID}) }) ||
		slices.ContainsFunc(changes.Nodes, func(n state.NodeRow) bool {
			return until(state.Quarantined{Node: admission.NodeKey{Cluster: n.Cluster, Name: n.Name}})
		})
}

// triedTogether bounds how often terms end to try something again.
const triedTogether = 5 * time.Second

// Due reports whether something that a term, which has begun then, keeps out of decisions is to be
// tried again. That takes another term, because this one has not read what it has left out. All
// that is over within triedTogether takes one.
func (m *Memory) Due(begun, now time.Time) bool {
	grid := now.Truncate(triedTogether)
	for _, a := range m.quarantined {
		if a.Over(grid) && !a.Over(begun) {
			return true
		}
	}
	return false
}

// KeptOut is how much is kept out of decisions at a time. What is tried again by itself is
// remembered for longer.
func (m *Memory) KeptOut(now time.Time) (n int) {
	for _, a := range m.quarantined {
		if a.Until.IsZero() || a.Until.After(now) {
			n++
		}
	}
	return n
}

// forgetScopes forgets quota that has taken what is used for so long that the next refusal is the
// first again.
func (m *Memory) forgetScopes(now time.Time) {
	maps.DeleteFunc(m.quarantined, func(_ string, a state.Quarantined) bool { return a.Scope != "" && !recent(a, now) })
}

// recent reports whether what was kept out of decisions until a time was so not long ago.
func recent(a state.Quarantined, now time.Time) bool { return now.Sub(a.Until) < longestHeld }
