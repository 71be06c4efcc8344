package engine

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

// QuarantineSet is what is in quarantine, by the id of the workload, by CLUSTER/NODE, or by the
// scope of a quota.
type QuarantineSet map[string]state.Quarantined

func keyOf(a state.Quarantined) string {
	switch {
	case a.Node.Name != "":
		return a.Node.Cluster + "/" + a.Node.Name
	case a.Scope != "":
		return a.Scope
	}
	return string(a.Workload)
}

// Add adds to the quarantine.
func (s QuarantineSet) Add(more ...state.Quarantined) {
	for _, one := range more {
		s[keyOf(one)] = one
	}
}

// Apply has the state keep out of decisions what is in quarantine. It comes at the beginning
// of a term, before any message.
func (s QuarantineSet) Apply(step *Step, now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		quarantined := s[key]
		step.Do(decisionlog.Input{Kind: decisionlog.Quarantine, At: now, Quarantined: &quarantined})
	}
}

// Memory is what a process keeps from one of its terms to the next about terms that
// failed. What mirrors the ledger counts only while the terms follow each other.
type Memory struct {
	poison poison
	// led is the epoch of the process's last term.
	led int64
	// quarantined is what could not be stored. What the ledger has in quarantine, too, is
	// released by removing it there.
	quarantined QuarantineSet
	stored      map[string]bool // of quarantined, what was written to the ledger or read there
	announced   map[string]int  // of quarantined, the number of tries that the last event named
	// refusedSince is when the first term has ended that left one of the refusals below, or a
	// message in poison; zero while there are none.
	refusedSince time.Time
	// unrecorded: decisions cannot be recorded.
	unrecorded bool
	// noPastUsage: past usage cannot be stored.
	noPastUsage bool
	// noLearned: what was learned of the cost of evictions cannot be stored.
	noLearned bool
	// failures counts the terms that failed one after the other for what was in their
	// commits, and for which nothing was found to blame.
	failures int
	// persistent is the SQLSTATE with which the last commits have failed, if it should pass by
	// waiting, and persisted how often they have one after the other.
	persistent string
	persisted  int
	// fruitless counts the terms that began and failed one after the other for anything else,
	// counted is the epoch of the last one.
	fruitless int
	counted   int64
	// mayBeOlder: the database was replaced, or has lost a commit, and no term has looked yet
	// for what is lost with it.
	mayBeOlder bool
}

// NewMemory is the memory of a process that starts.
func NewMemory() *Memory {
	return &Memory{poison: poison{}, quarantined: QuarantineSet{}, stored: map[string]bool{}, announced: map[string]int{}}
}

// StartTerm begins the term of an epoch that follows the epoch before. When that one was not
// of this process, another process has led since, or the ledger was restored to an older
// state. The quarantine is then what the ledger has, because an operator may have released
// some of it meanwhile. What Postgres still refuses is found again.
func (m *Memory) StartTerm(before, epoch int64) {
	if epoch != m.led && before != m.led {
		m.quarantined, m.stored, m.announced = QuarantineSet{}, map[string]bool{}, map[string]int{}
	}
	m.led = epoch
}

// afterWholeTerm forgets what holds until a term has ended in order: what the database
// refused then may pass by now.
func (m *Memory) afterWholeTerm() {
	m.failures, m.fruitless, m.persisted = 0, 0, 0
	m.forgetRefusals()
}

func (m *Memory) forgetRefusals() {
	m.unrecorded, m.noPastUsage, m.noLearned = false, false, false
	clear(m.poison)
	m.refusedSince = time.Time{}
}

// forgetOldRefusals forgets, when a term has ended in whatever way, what afterWholeTerm forgets of
// the database, once that is as old as the longest term: no term of this process may last so long,
// because each ends to try something again, or fails.
func (m *Memory) forgetOldRefusals(longest time.Duration, now time.Time) {
	switch known := m.unrecorded || m.noPastUsage || m.noLearned || len(m.poison) > 0; {
	case !known:
		m.refusedSince = time.Time{}
	case m.refusedSince.IsZero():
		m.refusedSince = now
	case now.Sub(m.refusedSince) >= longest:
		m.forgetRefusals()
	}
}

// Sync brings the memory up to date with the quarantine in the ledger. It returns what an
// operator has released. What a term that has begun then does not keep out of decisions is not
// released: its time has come, and the ledger forgets it after a while.
func (m *Memory) Sync(quarantined []state.Quarantined, begun, now time.Time) (released []string) {
	there := map[string]bool{}
	for _, a := range quarantined {
		there[keyOf(a)] = true
		m.quarantined.Add(a)
	}
	for key := range m.stored {
		if !there[key] {
			if a := m.quarantined[key]; !endedBy(a, begun, now) {
				released = append(released, key)
			}
			delete(m.quarantined, key)
			delete(m.announced, key)
		}
	}
	m.stored = there
	slices.Sort(released)
	return released
}

// endedBy reports whether a term that has begun then has nothing to try again of what was
// quarantined: a state goes on by itself with what is held until a time, and leaves the rest out
// until its end.
func endedBy(a state.Quarantined, begun, now time.Time) bool {
	if a.Level == state.QuarantineHeld {
		return !a.Until.IsZero() && !a.Until.After(now)
	}
	return a.Over(begun)
}

// ApplyTo has a step know the quarantine and the poison messages. It comes at the beginning of
// a term, before any message.
func (m *Memory) ApplyTo(step *Step, now time.Time) {
	m.forgetScopes(now)
	step.poison, step.Unrecorded, step.NoPastUsage, step.NoLearned = m.poison, m.unrecorded, m.noPastUsage, m.noLearned
	m.quarantined.Apply(step, now)
}

// Remember keeps a diagnosis for the next terms, but for rejected submissions: Step.Reject
// keeps those.
func (m *Memory) Remember(d Diagnosis) {
	m.unrecorded = m.unrecorded || d.Unrecorded
	m.noPastUsage = m.noPastUsage || d.NoPastUsage
	m.noLearned = m.noLearned || d.NoLearned
	for _, r := range d.Dropped {
		m.poison.add(r.Delivery, "its content cannot be stored: "+r.Cause.Error())
	}
	m.quarantined.Add(d.Quarantined...)
}

// addUnread adds live workloads of which the database refuses to read the row, and returns those
// that were not kept out of decisions before.
func (m *Memory) addUnread(unread []state.Quarantined) (added []state.Quarantined) {
	for _, a := range unread {
		if before := m.quarantined[keyOf(a)]; before.Level < a.Level || !before.Until.IsZero() {
			m.quarantined.Add(a)
			added = append(added, a)
		}
	}
	return added
}

// Unannounced returns the frozen workloads whose present try no event has named yet.
// They count as announced from then on.
func (m *Memory) Unannounced(s *state.State) (unannounced []state.Quarantined) {
	for _, key := range slices.Sorted(maps.Keys(m.quarantined)) {
		a := m.quarantined[key]
		if tries, announced := m.announced[key]; s.IsFrozen(a.Workload) && (!announced || tries != a.Tries) {
			m.announced[key] = a.Tries
			unannounced = append(unannounced, a)
		}
	}
	return unannounced
}

// Store has a part of the quarantine written to the ledger. An operator can release only
// what is there, even while another process leads. Quota, which is tried again by itself, is not
// there: another leader finds it again.
func (m *Memory) Store(quarantined []state.Quarantined, write func([]state.Quarantined) error) error {
	quarantined = slices.DeleteFunc(slices.Clone(quarantined), func(a state.Quarantined) bool { return a.Scope != "" })
	if len(quarantined) == 0 {
		return nil
	}
	if err := write(quarantined); err != nil {
		return err
	}
	for _, a := range quarantined {
		m.stored[keyOf(a)] = true
	}
	return nil
}

// Unstored returns what of the quarantine only this process knows: nodes, and workloads
// that the state has or could not read.
func (m *Memory) Unstored(s *state.State) (unstored []state.Quarantined) {
	for _, key := range slices.Sorted(maps.Keys(m.quarantined)) {
		a := m.quarantined[key]
		_, live := s.Record(a.Workload)
		unread := slices.ContainsFunc(s.Unread(), func(u state.Quarantined) bool { return u.Workload == a.Workload })
		if !m.stored[key] && (live || unread || a.Node.Name != "") {
			unstored = append(unstored, a)
		}
	}
	return unstored
}

// InQuarantine reports whether the ledger has anything in quarantine, as far as is known.
func (m *Memory) InQuarantine() bool { return len(m.stored) > 0 }
