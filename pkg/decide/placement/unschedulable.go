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
	// version counts additions and calls of Requeued, to know which verdicts have seen
	// a node as it was.
	version int64
	dirty   []*node
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
