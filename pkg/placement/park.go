package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/workload"
)

// parking remembers the shapes that do not fit, by what their pods ask, and which
// nodes have changed since somebody looked.
type parking struct {
	shapes map[string]*shape
	// fickle shapes have a spread: a domain less may be what lets them fit.
	fickle map[string]*shape
	needs  map[string]*need
	order  []*need // by key
	// moment counts parks and wakes: verdicts are of a moment.
	moment int64
	dirty  []*node
}

// sight is what is remembered of a node that has changed: the least that a parked
// verdict may have seen there.
type sight struct {
	moment int64 // of the last change
	dirty  bool
	low    vector
	// gone: a verdict may have seen it with other labels, taints or ports, or not
	// at all.
	gone bool
}

// need is what a pod of some parked shapes asks of a node.
type need struct {
	key      string
	template *workload.Template
	// grown counts for how many pods more there has been room since the need was
	// made; what was lost meanwhile is not taken off.
	grown   int64
	waiters []*waiter // by threshold
}

// waiter wakes a shape once a need has grown enough.
type waiter struct {
	shape     *shape
	threshold int64
	any       bool // any growth of a node that takes a pod will do
}

type shape struct {
	name    string
	waiters []*waiter
	needs   []string // of the waiters, by key
}

func newParking() parking {
	return parking{shapes: map[string]*shape{}, fickle: map[string]*shape{}, needs: map[string]*need{}, moment: 1}
}

// clone returns a parking of its own. Shapes and waiters do not change.
func (p *parking) clone() parking {
	c := *p
	c.shapes, c.fickle, c.dirty = maps.Clone(p.shapes), maps.Clone(p.fickle), slices.Clone(p.dirty)
	c.needs, c.order = make(map[string]*need, len(p.needs)), make([]*need, len(p.order))
	for i, n := range p.order {
		same := *n
		same.waiters = slices.Clone(n.waiters)
		c.order[i], c.needs[n.key] = &same, &same
	}
	return c
}

// Park remembers a shape that does not fit, or of which that is unknown, so that
// Wake finds it when it may. The verdict must be of the fleet as it is now.
// shape is the caller's name for workloads with equal pod sets. Within a what-if,
// a Rollback counts as a change.
func (f *Fleet) Park(name string, w *workload.Workload, v Verdict) {
	p := &f.parked
	f.Unpark(name)
	s := &shape{name: name}
	p.shapes[name] = s
	p.moment++
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if set.Count == 0 {
			continue
		}
		if len(set.Template.Spread) > 0 {
			p.fickle[name] = s
		}
		missing, any := int64(1), true
		if c := v.Certificate; c != nil && v.Outcome == DoesNotFit {
			if !slices.Contains(c.PodSets, set.Name) {
				continue // the others must fit first
			}
			if c.Proof == Counted {
				missing, any = int64(set.Count-c.Room), false
			}
		}
		p.wait(s, &set.Template, missing, any)
	}
}

func (p *parking) wait(s *shape, t *workload.Template, missing int64, any bool) {
	key := string(appendTemplateKey(nil, t))
	for _, port := range t.HostPorts {
		key = string(appendAmount(appendTexts([]byte(key), port.Protocol, port.IP), int64(port.Port)))
	}
	n := p.needs[key]
	if n == nil {
		n = &need{key: key, template: t}
		p.needs[key] = n
		i, _ := slices.BinarySearchFunc(p.order, key, func(n *need, key string) int { return strings.Compare(n.key, key) })
		p.order = slices.Insert(p.order, i, n)
	}
	w := &waiter{shape: s, threshold: n.grown + missing, any: any}
	if any {
		w.threshold = 0 // before all others
	}
	i, _ := slices.BinarySearchFunc(n.waiters, w, compareWaiters)
	n.waiters = slices.Insert(n.waiters, i, w)
	s.waiters, s.needs = append(s.waiters, w), append(s.needs, key)
}

func compareWaiters(a, b *waiter) int {
	return cmp.Or(cmp.Compare(a.threshold, b.threshold), strings.Compare(a.shape.name, b.shape.name))
}

// Unpark forgets a shape.
func (f *Fleet) Unpark(name string) {
	p := &f.parked
	s := p.shapes[name]
	if s == nil {
		return
	}
	delete(p.shapes, name)
	delete(p.fickle, name)
	for i, key := range s.needs {
		n := p.needs[key]
		at, _ := slices.BinarySearchFunc(n.waiters, s.waiters[i], compareWaiters)
		at += slices.Index(n.waiters[at:], s.waiters[i])
		n.waiters = slices.Delete(n.waiters, at, at+1)
		if len(n.waiters) == 0 {
			delete(p.needs, key)
			j, _ := slices.BinarySearchFunc(p.order, key, func(n *need, key string) int { return strings.Compare(n.key, key) })
			p.order = slices.Delete(p.order, j, j+1)
		}
	}
}

// leaving notes what a node that is about to change was, when a verdict may have
// seen it so.
func (p *parking) leaving(n *node) {
	s := &n.sight
	if s.moment == p.moment || len(p.shapes) == 0 {
		return
	}
	s.moment = p.moment
	if !s.dirty {
		s.dirty, s.low, s.gone = true, n.free, !n.present
		p.dirty = append(p.dirty, n)
		return
	}
	low := make(vector, max(len(s.low), len(n.free)))
	for i := range low {
		low[i] = min(s.low.at(i), n.free.at(i))
	}
	s.low, s.gone = low, s.gone || !n.present
}

// relabelled notes that a node changed in what no vector shows.
func (p *parking) relabelled(n *node) {
	if n.sight.dirty {
		n.sight.gone = true
	}
}

// Wake returns, in sorted order, the parked shapes that may fit since nodes have
// changed, and unparks them. The verdict on all others still holds. What a
// what-if changed and a Rollback undid wakes nobody. The cost is that of the
// nodes that changed and of what different pods ask, not of how many shapes are
// parked.
func (f *Fleet) Wake() []string {
	p := &f.parked
	if len(p.dirty) == 0 {
		return nil
	}
	p.moment++
	woken := map[*shape]bool{}
	for _, n := range p.dirty {
		if n.sight.gone || !n.present {
			for _, s := range p.fickle {
				woken[s] = true
			}
		}
		if n.present && (n.sight.gone || n.free.exceeds(n.sight.low)) {
			for _, need := range p.order {
				f.grow(need, n, woken)
			}
		}
		n.sight = sight{moment: 0}
	}
	p.dirty = p.dirty[:0]
	var names []string
	for s := range woken {
		names = append(names, s.name)
		f.Unpark(s.name)
	}
	slices.Sort(names)
	return names
}

// grow weighs what a node that grew means for a need.
func (f *Fleet) grow(need *need, n *node, woken map[*shape]bool) {
	const many = 1 << 30
	now := f.roomFor(need.template, n.free, many)
	if now == 0 || n.Refuses(need.template) != "" {
		return
	}
	before := 0
	if !n.sight.gone {
		before = f.roomFor(need.template, n.sight.low, many)
	}
	need.grown += int64(max(0, now-before))
	for _, w := range need.waiters {
		if !w.any && w.threshold > need.grown {
			break
		}
		woken[w.shape] = true
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
