package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// unschedulable is the set of pod-set signatures that do not fit, by what their pods ask
// for, and of the nodes that have changed since Requeued.
type unschedulable struct {
	members map[string]*member
	// withSpread are the members with a topology spread: one domain less may let them
	// fit.
	withSpread map[string]*member
	needs      map[string]*need
	order      []*need // by key
	// version counts additions and calls of Requeued, to tell which verdicts have seen
	// a node as it was.
	version int64
	dirty   []*node
}

// requeueHint is what has changed on a node: the smallest free amounts that the verdict
// of a member may have seen there.
type requeueHint struct {
	version int64 // of the last change
	dirty   bool
	low     vector
	// incomparable: a verdict may have seen it with other labels, taints or ports, or
	// not at all.
	incomparable bool
}

// need is what a pod of some members asks of a node.
type need struct {
	key      string
	template *workload.Template
	// grown counts the pods for which room has appeared since the need was made; lost
	// room is not subtracted.
	grown   int64
	waiters []*waiter // by threshold
}

// waiter requeues a member once a need has grown enough.
type waiter struct {
	member    *member
	threshold int64
	any       bool // any growth of a node that takes a pod will do
}

// member is one signature in the set, with its waiters.
type member struct {
	name    string
	waiters []*waiter
	needs   []string // of the waiters, by key
}

func newUnschedulable() unschedulable {
	return unschedulable{members: map[string]*member{}, withSpread: map[string]*member{}, needs: map[string]*need{}, version: 1}
}

// clone returns an independent copy. Members and waiters are immutable and shared.
func (u *unschedulable) clone() unschedulable {
	c := *u
	c.members, c.withSpread, c.dirty = maps.Clone(u.members), maps.Clone(u.withSpread), slices.Clone(u.dirty)
	c.needs, c.order = make(map[string]*need, len(u.needs)), make([]*need, len(u.order))
	for i, n := range u.order {
		same := *n
		same.waiters = slices.Clone(n.waiters)
		c.order[i], c.needs[n.key] = &same, &same
	}
	return c
}

// AddUnschedulable adds pods that do not fit, or of which that is unknown, so that
// Requeued returns the name when they may fit. The verdict must be of the fleet as it
// is now. The name is the caller's for workloads with equal pod sets. Within a what-if,
// a Rollback counts as a change.
func (f *Fleet) AddUnschedulable(name string, w *workload.Workload, v Verdict) {
	u := &f.unschedulable
	f.RemoveUnschedulable(name)
	m := &member{name: name}
	u.members[name] = m
	u.version++
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if set.Count == 0 {
			continue
		}
		if len(set.Template.Spread) > 0 {
			u.withSpread[name] = m
		}
		missing, anyGrowth := int64(1), true
		if c := v.Certificate; c != nil && v.Outcome == DoesNotFit {
			if !slices.Contains(c.PodSets, set.Name) {
				continue // the others must fit first
			}
			if c.Proof == Counted {
				missing, anyGrowth = int64(set.Count-c.Room), false
			}
		}
		u.wait(m, &set.Template, missing, anyGrowth)
	}
}

func (u *unschedulable) wait(m *member, t *workload.Template, missing int64, anyGrowth bool) {
	key := string(appendTemplateKey(nil, t))
	for _, port := range t.HostPorts {
		key = string(appendAmount(appendTexts([]byte(key), port.Protocol, port.IP), int64(port.Port)))
	}
	n := u.needs[key]
	if n == nil {
		n = &need{key: key, template: t}
		u.needs[key] = n
		i, _ := slices.BinarySearchFunc(u.order, key, func(n *need, key string) int { return strings.Compare(n.key, key) })
		u.order = slices.Insert(u.order, i, n)
	}
	w := &waiter{member: m, threshold: n.grown + missing, any: anyGrowth}
	if anyGrowth {
		w.threshold = 0 // before all others
	}
	i, _ := slices.BinarySearchFunc(n.waiters, w, compareWaiters)
	n.waiters = slices.Insert(n.waiters, i, w)
	m.waiters, m.needs = append(m.waiters, w), append(m.needs, key)
}

func compareWaiters(a, b *waiter) int {
	return cmp.Or(cmp.Compare(a.threshold, b.threshold), strings.Compare(a.member.name, b.member.name))
}

// RemoveUnschedulable removes a name from the set.
func (f *Fleet) RemoveUnschedulable(name string) {
	u := &f.unschedulable
	m := u.members[name]
	if m == nil {
		return
	}
	delete(u.members, name)
	delete(u.withSpread, name)
	for i, key := range m.needs {
		n := u.needs[key]
		at, _ := slices.BinarySearchFunc(n.waiters, m.waiters[i], compareWaiters)
		at += slices.Index(n.waiters[at:], m.waiters[i])
		n.waiters = slices.Delete(n.waiters, at, at+1)
		if len(n.waiters) == 0 {
			delete(u.needs, key)
			j, _ := slices.BinarySearchFunc(u.order, key, func(n *need, key string) int { return strings.Compare(n.key, key) })
			u.order = slices.Delete(u.order, j, j+1)
		}
	}
}

// recordBefore records what a node was before a change, if a verdict may have seen it
// so.
func (u *unschedulable) recordBefore(n *node) {
	h := &n.hint
	if h.version == u.version || len(u.members) == 0 {
		return
	}
	h.version = u.version
	if !h.dirty {
		h.dirty, h.low, h.incomparable = true, n.free, !n.present
		u.dirty = append(u.dirty, n)
		return
	}
	low := make(vector, max(len(h.low), len(n.free)))
	for i := range low {
		low[i] = min(h.low.at(i), n.free.at(i))
	}
	h.low, h.incomparable = low, h.incomparable || !n.present
}

// relabelled records a change of a node that its free amounts do not show.
func (u *unschedulable) relabelled(n *node) {
	if n.hint.dirty {
		n.hint.incomparable = true
	}
}

// Requeued removes from the unschedulable set, and returns in sorted order, the names
// that may fit because nodes have changed. The verdicts on all others are still valid.
// Changes that a Rollback has undone requeue nothing. The cost depends on the number of
// changed nodes and of different pod templates, not on the size of the set.
func (f *Fleet) Requeued() []string {
	u := &f.unschedulable
	if len(u.dirty) == 0 {
		return nil
	}
	u.version++
	requeued := map[*member]bool{}
	for _, n := range u.dirty {
		if n.hint.incomparable || !n.present {
			for _, m := range u.withSpread {
				requeued[m] = true
			}
		}
		if n.present && (n.hint.incomparable || n.free.exceeds(n.hint.low)) {
			for _, need := range u.order {
				f.noteRoom(need, n, requeued)
			}
		}
		n.hint = requeueHint{version: 0}
	}
	u.dirty = u.dirty[:0]
	var names []string
	for m := range requeued {
		names = append(names, m.name)
		f.RemoveUnschedulable(m.name)
	}
	slices.Sort(names)
	return names
}

// noteRoom adds the room that appeared on a node to a need, and collects the members for
// which it may be enough.
func (f *Fleet) noteRoom(need *need, n *node, requeued map[*member]bool) {
	const many = 1 << 30
	now := f.roomFor(need.template, n.free, many)
	if now == 0 || n.Refuses(need.template) != "" {
		return
	}
	before := 0
	if !n.hint.incomparable {
		before = f.roomFor(need.template, n.hint.low, many)
	}
	need.grown += int64(max(0, now-before))
	for _, w := range need.waiters {
		if !w.any && w.threshold > need.grown {
			break
		}
		requeued[w.member] = true
	}
}

// roomFor returns how many pods of a template free amounts take.
func (f *Fleet) roomFor(t *workload.Template, free vector, limit int64) int {
	for name, amount := range t.Requests {
		if amount <= 0 {
			continue
		}
		column, known := f.columns.index[name]
		if !known || free.at(column) < amount {
			return 0
		}
		limit = min(limit, free.at(column)/amount)
	}
	return int(limit)
}
