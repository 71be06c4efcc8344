package main

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
)

// state is what is free on a node, GPU by GPU. Nodes in the same state are
// interchangeable.
type state struct {
	cpu, memory int64
	gpus        [8]int64 // thousandths free, the most first
	size        int
}

func (s *state) idle() int64 {
	sum := int64(0)
	for _, free := range s.gpus[:s.size] {
		sum += free
	}
	return sum
}

// usable returns how much of the idle GPUs a pod's like can use: nothing when no
// pod fits, else what is free on GPUs that have room for a share.
func (s *state) usable(p pod) int64 {
	if p.cpu > s.cpu || p.memory > s.memory {
		return 0
	}
	roomy, sum := 0, int64(0)
	for _, free := range s.gpus[:s.size] {
		if free < p.share {
			break
		}
		roomy++
		sum += free
	}
	if roomy < p.gpus {
		return 0
	}
	return sum
}

// after returns the states that placing a pod can lead to: one for each GPU that
// a share may be taken from.
func (s *state) after(p pod) []state {
	if p.cpu > s.cpu || p.memory > s.memory {
		return nil
	}
	left := *s
	left.cpu, left.memory = s.cpu-p.cpu, s.memory-p.memory
	if p.gpus == 0 {
		return []state{left}
	}
	if s.size < p.gpus || s.gpus[p.gpus-1] < p.share {
		return nil
	}
	if p.share == whole {
		for i := range p.gpus {
			left.gpus[i] = 0
		}
		left.sort()
		return []state{left}
	}
	var all []state
	for i, free := range s.gpus[:s.size] {
		if free < p.share {
			break
		}
		if i > 0 && s.gpus[i-1] == free {
			continue
		}
		one := left
		one.gpus[i] -= p.share
		one.sort()
		all = append(all, one)
	}
	return all
}

func (s *state) sort() {
	slices.SortFunc(s.gpus[:s.size], func(a, b int64) int { return int(b - a) })
}

// typical is a kind of pods with GPUs and how often it occurs.
type typical struct {
	pod
	weight int64
}

// typicalOf counts the kinds of pods with GPUs.
func typicalOf(pods []pod) []typical {
	var all []typical
	at := map[pod]int{}
	for _, p := range pods {
		if p.gpus == 0 {
			continue
		}
		p.memory = 0
		i, known := at[p]
		if !known {
			i = len(all)
			at[p] = i
			all = append(all, typical{pod: p})
		}
		all[i].weight++
	}
	return all
}

// policy ranks a state to which a pod leads; the least is best.
type policy func(before, after *state) [4]int64

// cluster places pods one by one on nodes, kept by state.
type cluster struct {
	nodes    map[state]int
	capacity int64
	placed   int64
}

func newCluster(machines []machine) *cluster {
	c := &cluster{nodes: map[state]int{}}
	for _, m := range machines {
		s := state{cpu: m.cpu, memory: m.memory, size: m.gpus}
		for i := range m.gpus {
			s.gpus[i] = whole
		}
		c.nodes[s]++
		c.capacity += int64(m.gpus) * whole
	}
	return c
}

// place puts a pod where the policy ranks it first, if there is a place.
func (c *cluster) place(p pod, rank policy) {
	var best [4]int64
	var from, to state
	found := false
	for s := range c.nodes {
		for _, next := range s.after(p) {
			this := rank(&s, &next)
			order := slices.Compare(this[:], best[:])
			if found && (order > 0 || order == 0 && !earlier(&s, &next, &from, &to)) {
				continue
			}
			found, best, from, to = true, this, s, next
		}
	}
	if !found {
		return
	}
	if c.nodes[from]--; c.nodes[from] == 0 {
		delete(c.nodes, from)
	}
	c.nodes[to]++
	c.placed += p.demand()
}

// earlier orders what a policy ranks the same, so that results do not depend on
// the order of a map.
func earlier(s, next, from, to *state) bool {
	return cmp.Or(slices.Compare(s.gpus[:], from.gpus[:]), slices.Compare(next.gpus[:], to.gpus[:]),
		cmp.Compare(s.size, from.size), cmp.Compare(s.cpu, from.cpu), cmp.Compare(s.memory, from.memory)) < 0
}

// bestFit takes the node on which the least is left, each resource as a part of
// the largest node's.
func bestFit(_, after *state) [4]int64 {
	return [4]int64{after.idle()/8 + after.cpu/128, after.idle(), after.cpu, after.memory}
}

// measured ranks by what the typical pods cannot use any more: FGD's measure.
// With charge it is what package placement does, which also charges a little for
// leaving a node with much free; without, ties go to the fullest node.
func measured(all []typical, charge bool) policy {
	known, weight := map[state]int64{}, int64(0)
	for _, t := range all {
		weight += t.weight
	}
	stranded := func(s *state) int64 {
		sum, ok := known[*s]
		if ok {
			return sum
		}
		idle := s.idle()
		for _, t := range all {
			sum += t.weight * (idle - s.usable(t.pod))
		}
		known[*s] = sum
		return sum
	}
	return func(before, after *state) [4]int64 {
		more := stranded(after) - stranded(before)
		if charge {
			more = placement.Cost(more, weight, before.idle(), whole, after.cpu)
		}
		return [4]int64{more, before.idle(), before.cpu, before.memory}
	}
}
