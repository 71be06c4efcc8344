package placement

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// problem is a gang prepared for the search: its pod sets as kinds of pods, its
// constraints as rules on domains.
type problem struct {
	fleet *Fleet
	kinds []kind
	rules []rule
	left  int // steps of search
}

// kind is the pods of a pod set.
type kind struct {
	set     *workload.PodSet
	order   int // of the pod set in the workload
	count   int
	filter  *filter
	asks    []ask
	unknown bool  // it asks for a resource that no node has
	devices int64 // how many devices a pod asks
	// most pods of the kind that a node takes, resources aside.
	most int
}

// ask is an amount of a resource that a pod asks.
type ask struct {
	column int
	amount int64
}

// rule is a constraint on how many pods of some kinds a domain may have. If a rule
// allows a set of numbers in a domain, it allows smaller ones, too, except bind and
// slices, which demand multiples, and spread, which may demand a least number.
type rule struct {
	kind  ruleKind
	key   string // the label whose values are the domains, or perNode
	kinds []int  // bind: all; apart: two, or one twice; others: one
	// owners are the kinds whose own terms bind: a rule counts for any of them alone, too.
	owners []int
	// size is the pods of a slice, or the skew of a spread.
	size       int
	minDomains int
	// within: the level is below the one that is asked for.
	within bool
}

// perNode is the key of rules on single nodes; no label has it.
const perNode = "\x00"

type ruleKind int

const (
	bind   ruleKind = iota // all pods of the kinds in one domain
	slice                  // pods in a domain are a multiple of size
	apart                  // pods of both kinds are not in one domain; of one kind, one pod per domain
	spread                 // numbers of pods in domains differ by size at most
	prefer                 // few domains, if it can be: no constraint
)

// newProblem prepares a gang. It leaves out pod sets without pods.
func (f *Fleet) newProblem(w *workload.Workload, budget int) *problem {
	f.since = f.uses
	f.refile()
	p := &problem{fleet: f, left: budget, kinds: make([]kind, 0, len(w.PodSets))}
	of := map[string]int{}
	for i := range w.PodSets {
		if set := &w.PodSets[i]; set.Count > 0 {
			of[set.Name] = len(p.kinds)
			p.kinds = append(p.kinds, f.newKind(set, i))
		}
	}
	for i := range p.kinds {
		p.addRules(i, of)
	}
	p.mergeBinds()
	for i := range p.kinds {
		for j := range i {
			if portConflict(p.kinds[i].set.Template.HostPorts, p.kinds[j].set.Template.HostPorts) {
				p.rules = append(p.rules, rule{kind: apart, key: perNode, kinds: []int{j, i}})
			}
		}
	}
	return p
}

func (f *Fleet) newKind(set *workload.PodSet, order int) kind {
	k := kind{set: set, order: order, count: set.Count, most: set.Count, filter: f.filterOf(&set.Template)}
	if len(set.Template.HostPorts) > 0 {
		k.most = 1
	}
	k.asks = make([]ask, 0, len(set.Template.Requests))
	for name, amount := range set.Template.Requests {
		if amount <= 0 {
			continue
		}
		column, known := f.columns.index[name]
		if !known {
			k.unknown = true
			continue
		}
		k.asks = append(k.asks, ask{column, amount})
		if extended(name) {
			k.devices = add(k.devices, amount)
		}
	}
	slices.SortFunc(k.asks, func(a, b ask) int { return cmp.Compare(a.column, b.column) })
	return k
}

func (p *problem) addRules(i int, of map[string]int) {
	set := p.kinds[i].set
	for _, t := range set.Template.Together {
		r := rule{kind: bind, key: t.TopologyKey, kinds: []int{i}, owners: []int{i}}
		for _, name := range t.PodSets {
			if j, ok := of[name]; ok && j != i {
				r.kinds = append(r.kinds, j)
			}
		}
		p.rules = append(p.rules, r)
	}
	for _, a := range set.Template.Apart {
		for _, name := range a.PodSets {
			if j, ok := of[name]; ok {
				p.rules = append(p.rules, rule{kind: apart, key: a.TopologyKey, kinds: []int{min(i, j), max(i, j)}})
			}
		}
	}
	for _, s := range set.Template.Spread {
		p.rules = append(p.rules, rule{kind: spread, key: s.TopologyKey, kinds: []int{i}, size: max(1, s.MaxSkew), minDomains: s.MinDomains})
	}
	t := set.Topology
	if t == nil {
		return
	}
	switch t.Mode {
	case workload.TopologyRequired:
		p.rules = append(p.rules, rule{kind: bind, key: t.Level, kinds: []int{i}, owners: []int{i}})
	case workload.TopologyPreferred:
		for _, level := range workload.LevelsDownTo(t.Level) {
			p.rules = append(p.rules, rule{kind: prefer, key: level, kinds: []int{i}})
		}
	}
	for _, level := range t.LevelsWithin() {
		if t.SliceSize <= 1 {
			p.rules = append(p.rules, rule{kind: prefer, key: level, kinds: []int{i}, within: true})
		}
	}
	if t.SliceSize > 1 {
		p.rules = append(p.rules, rule{kind: slice, key: t.SliceLevel, kinds: []int{i}, size: t.SliceSize})
	}
}

// fits returns how many pods of the kind the free amounts take, at most limit.
func (k *kind) fits(free vector, limit int) int {
	if k.unknown {
		return 0
	}
	times := int64(limit)
	for _, a := range k.asks {
		room := free.at(a.column)
		if room < a.amount {
			return 0
		}
		times = min(times, room/a.amount)
	}
	return int(times)
}

// on returns how many pods of the kind the nodes of a group take each, at most
// limit.
func (k *kind) on(g *group, limit int) int {
	if !k.filter.eligible(g.nodes[0]) {
		return 0
	}
	times := k.fits(g.free, min(limit, k.most))
	if times > 0 && len(k.set.Template.HostPorts) > 0 && portConflict(k.set.Template.HostPorts, g.nodes[0].inUse) {
		return 0
	}
	return times
}

// minus returns what that number of pods of the kind leave of free.
func (k *kind) minus(free vector, pods int) vector {
	left := slices.Clone(free)
	for _, a := range k.asks {
		left[a.column] = add(left[a.column], -multiply(a.amount, int64(pods)))
	}
	return left
}

// hardestFirst orders kinds by what they ask: devices, then CPU, memory and the rest.
func (p *problem) hardestFirst() []int {
	order := make([]int, len(p.kinds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &p.kinds[i], &p.kinds[j]
		if byDevices := cmp.Compare(b.devices, a.devices); byDevices != 0 {
			return byDevices
		}
		for _, column := range p.fleet.columns.order {
			if order := cmp.Compare(b.asked(column), a.asked(column)); order != 0 {
				return order
			}
		}
		return 0
	})
	return order
}

func (k *kind) asked(column int) int64 {
	for _, a := range k.asks {
		if a.column == column {
			return a.amount
		}
	}
	return 0
}
