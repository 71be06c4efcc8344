package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// shortage states what a kind lacks of which that many pods have no place: the
// resource that most of its eligible nodes lack beyond what bins have there, and which
// nodes are not eligible.
func (p *problem) shortage(i, unplaced int, bins map[*node]bin) *workload.Shortage {
	k := &p.kinds[i]
	short := &workload.Shortage{
		PodSet: k.set.Name, Pods: k.count, Unplaced: unplaced, Nodes: p.fleet.Len(), Excluded: map[string]int{},
	}
	eligible := p.eligibleNodes(k, bins, short)
	if short.Eligible > 0 {
		p.findLacking(k, eligible, short)
	}
	return short
}

// eligibleNodes returns what is left on the nodes that are eligible for a kind, and counts
// those and the others.
func (p *problem) eligibleNodes(k *kind, bins map[*node]bin, short *workload.Shortage) (eligible []rest) {
	taints := map[capacity.Taint]int{}
	for _, c := range p.fleet.classList {
		if !k.filter.eligible(c.groups[0].nodes[0]) {
			for _, g := range c.groups {
				for _, n := range g.nodes {
					if taint, is := k.filter.taintOf(n); is {
						taints[taint]++
					} else {
						short.Excluded[string(k.filter.refusals[n.slot])]++
					}
				}
			}
			continue
		}
		for _, g := range c.groups {
			if portConflict(k.set.Template.HostPorts, g.nodes[0].inUse) {
				short.Excluded[portsInUse] += len(g.nodes)
				continue
			}
			short.Eligible += len(g.nodes)
			eligible = append(eligible, left(g, bins)...)
		}
	}
	nameTaints(short.Excluded, taints)
	return eligible
}

// findLacking names the resource that most of the eligible nodes lack, and all of them where
// no node has enough of each.
func (p *problem) findLacking(k *kind, eligible []rest, short *workload.Shortage) {
	mostLacking := -1
	var lacks []workload.Lack
	for _, name := range k.set.Template.Requests.Names() {
		asked := k.set.Template.Requests[name]
		lacking, largest, sum := 0, int64(0), int64(0)
		for i, r := range eligible {
			free := max(0, p.freeOf(r, name))
			largest, sum = max(largest, free), add(sum, multiply(free, int64(r.nodes)))
			if free < asked {
				lacking += r.nodes
				eligible[i].short = true
			}
		}
		if lacking > 0 {
			lacks = append(lacks, workload.Lack{Resource: name, Asked: asked, Nodes: lacking})
		}
		if lacking > mostLacking || lacking == mostLacking && extended(name) && !extended(short.Resource) {
			mostLacking = lacking
			short.Resource, short.Asked, short.Largest, short.Sum = name, asked, largest, sum
		}
	}
	enough := func(r rest) bool { return !r.short }
	if mostLacking < short.Eligible && !slices.ContainsFunc(eligible, enough) {
		slices.SortStableFunc(lacks, func(a, b workload.Lack) int { return cmp.Compare(b.Nodes, a.Nodes) })
		first := slices.IndexFunc(lacks, func(l workload.Lack) bool { return l.Resource == short.Resource })
		short.Lacking = slices.Concat(lacks[first:first+1], lacks[:first], lacks[first+1:])
	}
}

// freeOf returns how much of a resource is free on each of these nodes.
func (p *problem) freeOf(r rest, name resource.Name) int64 {
	if column, known := p.fleet.columns.index[name]; known {
		return r.free.at(column)
	}
	return 0
}

// rest is what is free on each of some nodes.
type rest struct {
	free  vector
	nodes int
	short bool // of something that is asked
}

// left returns what the bins leave free on the nodes of a group.
func left(g *group, bins map[*node]bin) []rest {
	if len(bins) == 0 {
		return []rest{{free: g.free, nodes: len(g.nodes)}}
	}
	all := []rest{{free: g.free, nodes: len(g.nodes)}}
	for _, n := range g.nodes {
		if b, touched := bins[n]; touched {
			all[0].nodes--
			all = append(all, rest{free: b.free, nodes: 1})
		}
	}
	if all[0].nodes == 0 {
		all = all[1:]
	}
	return all
}

// leftOver describes what is lacking for the kind that packing could not place after
// those before it.
func (p *problem) leftOver(packed *packing, stuck *kind) *workload.Shortage {
	if packed == nil { // rules that packing does not follow: pack without them
		relaxed := *p
		relaxed.rules = slices.DeleteFunc(slices.Clone(p.rules), func(r rule) bool { return r.key != perNode })
		if packed, stuck = relaxed.pack(); stuck == nil {
			short := p.shortage(p.hardestFirst()[0], 1, nil)
			short.Constraint = p.constraints()
			return short
		}
	}
	i := slices.IndexFunc(p.kinds, func(k kind) bool { return k.order == stuck.order })
	placed := 0
	for _, b := range packed.bins {
		placed += b.pods[i]
	}
	unplaced := max(1, stuck.count-placed)
	short := p.shortage(i, unplaced, packed.bins)
	if p.ruled(i) || short.Eligible > 0 && !lacksSomething(short) {
		short.Constraint = p.constraints()
	}
	return short
}

// ruledOut describes a kind that fits except for its rules. best is the largest number
// of its pods that have places under them, as far as known.
func (p *problem) ruledOut(i, best int) *workload.Shortage {
	k := &p.kinds[i]
	if r := p.bound(i); r != nil {
		packed := &packing{problem: p}
		for _, s := range packed.shares(p.fleet.topologyOf(r.key), p.fleet.inOrder()) {
			best = max(best, packed.capacity(i, s.nodes, packed.levelsOf(i), k.count))
		}
		best = min(best, k.count-1)
	}
	short := p.shortage(i, max(1, k.count-best), nil)
	short.Constraint = p.constraints()
	return short
}

// constraints names the rules on domains or, where there are none, those on single
// nodes.
func (p *problem) constraints() string {
	var texts []string
	for _, r := range p.rules {
		if r.key == perNode || r.kind == prefer {
			continue
		}
		text := ""
		switch r.kind {
		case bind:
			text = fmt.Sprintf("all in one domain of %q", r.key)
		case slice:
			text = fmt.Sprintf("%d each in one domain of %q", r.size, r.key)
		case apart:
			text = fmt.Sprintf("apart in domains of %q", r.key)
		case spread:
			text = fmt.Sprintf("spread over domains of %q with skew %d", r.key, r.size)
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return "on nodes of their own because of host ports"
	}
	return strings.Join(texts, ", ")
}
