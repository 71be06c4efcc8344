package certificate

import (
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// ErrTooLarge is returned when verifying a search would exceed the limit.
var ErrTooLarge = errors.New("too large to verify by search")

// limit bounds a verification by search, in mixes of pods on a node.
const limit = 20_000_000

// Check returns nil when the certificate proves that the gang does not fit on the
// nodes, else an error with what is wrong with it.
func Check(nodes []placement.View, w *workload.Workload, c *placement.Certificate) error {
	reduced := *w
	reduced.PodSets = nil
	for _, name := range c.PodSets {
		i := indexOf(w, name)
		if i < 0 || w.PodSets[i].Count == 0 {
			return fmt.Errorf("pod set %q has no pods", name)
		}
		reduced.PodSets = append(reduced.PodSets, w.PodSets[i])
	}
	if len(reduced.PodSets) == 0 {
		return errors.New("no pod set is named")
	}
	switch c.Proof {
	case placement.Counted:
		return counted(nodes, &reduced, c)
	case placement.Summed:
		return summed(nodes, &reduced, c.Resource)
	case placement.Searched:
		return searched(nodes, &reduced)
	}
	return fmt.Errorf("unknown proof %q", c.Proof)
}

// counted adds up how many pods of the only set each node takes.
func counted(nodes []placement.View, w *workload.Workload, c *placement.Certificate) error {
	if len(w.PodSets) != 1 {
		return errors.New("a count is of one pod set")
	}
	room, count := 0, w.PodSets[0].Count
	for j := range nodes {
		for n := 1; n <= count && nodeTakes(&nodes[j], w, func(int) int { return n }) == nil; n++ {
			room++
		}
	}
	if room >= count || room != c.Room {
		return fmt.Errorf("nodes have room for %d of %d pods of %q, the certificate has %d", room, count, w.PodSets[0].Name, c.Room)
	}
	return nil
}

// summed compares what is asked of a resource with what is free on nodes that
// take any of the pods.
func summed(nodes []placement.View, w *workload.Workload, name resource.Name) error {
	asked, free := resource.List{}, resource.List{}
	for _, set := range w.PodSets {
		asked = asked.Plus(set.Template.Requests.Times(int64(set.Count)))
	}
	for j := range nodes {
		takes := slices.ContainsFunc([]int{0}, func(int) bool {
			for i := range w.PodSets {
				one := func(set int) int {
					if set == i {
						return 1
					}
					return 0
				}
				if nodeTakes(&nodes[j], w, one) == nil {
					return true
				}
			}
			return false
		})
		if takes {
			free = free.Plus(resource.List{name: nodes[j].Free[name]})
		}
	}
	if asked[name] <= free[name] {
		return fmt.Errorf("%s of %s are asked, %s free", resource.Format(name, asked[name]), name, resource.Format(name, free[name]))
	}
	return nil
}

// searched goes through all numbers of pods on all nodes, one node after the
// other. Two ways that have the same pods in the same domains so far are one.
func searched(nodes []placement.View, w *workload.Workload) error {
	return newWalk(nodes, w, limit).proves()
}

// walk is the state of such a search.
type walk struct {
	nodes []placement.View
	w     *workload.Workload
	pods  table
	keys  []string
	seen  []map[string]bool
	left  int // steps
	// priced: steps count by what they cost in time and memory.
	priced bool
}

func newWalk(nodes []placement.View, w *workload.Workload, steps int) *walk {
	s := &walk{nodes: nodes, w: w, pods: newPods(nodes, w), keys: keysOf(w), seen: make([]map[string]bool, len(nodes)+1), left: steps}
	for i := range s.seen {
		s.seen[i] = map[string]bool{}
	}
	return s
}

// proves returns nil when there is no way.
func (s *walk) proves() error {
	switch found := s.from(0, 0); {
	case found:
		return fmt.Errorf("the gang fits: %v", s.pods)
	case s.left <= 0:
		return ErrTooLarge
	}
	return nil
}

// spend takes the cost of steps off what is left; it reports whether something is.
func (s *walk) spend(cost int) bool {
	if !s.priced {
		cost = 1
	}
	s.left -= cost
	return s.left > 0
}

// from fills node j with pods of set i and of those after it, and then the nodes
// after it. It reports whether that leads to places for all.
func (s *walk) from(j, i int) bool {
	if j == len(s.nodes) {
		for set := range s.w.PodSets {
			if sum(s.pods[set]) != s.w.PodSets[set].Count {
				return false
			}
		}
		return obeys(s.nodes, s.w, s.pods) == nil
	}
	if i == 0 {
		if broken(s.nodes, s.w, s.pods) || !s.spend(1+j*len(s.w.PodSets)*(1+2*len(s.keys))/4) {
			return false
		}
		key := s.summary(j)
		if s.seen[j][key] {
			return false
		}
		s.seen[j][key] = true
	}
	if i == len(s.w.PodSets) {
		return s.from(j+1, 0)
	}
	wanted := s.w.PodSets[i].Count - sum(s.pods[i])
	for n := 0; n <= wanted; n++ {
		if !s.spend(len(s.w.PodSets)) {
			return false
		}
		s.pods[i][j] = n
		if nodeTakes(&s.nodes[j], s.w, func(set int) int { return s.pods[set][j] }) != nil {
			break
		}
		if s.from(j, i+1) {
			return true
		}
	}
	s.pods[i][j] = 0
	return false
}

// summary is what matters later of the pods on the nodes before j.
func (s *walk) summary(j int) string {
	var totals []int
	for _, numbers := range s.pods {
		totals = append(totals, sum(numbers[:j]))
	}
	text := fmt.Sprint(totals)
	for _, key := range s.keys {
		for set := range s.pods {
			byValue, bare := domainsOf(s.nodes[:j], key, s.pods, set)
			text += fmt.Sprint(byValue, bare) // maps print in order of their keys
		}
	}
	return text
}

// keysOf returns the labels whose domains matter to the gang.
func keysOf(w *workload.Workload) []string {
	var keys []string
	for _, set := range w.PodSets {
		for _, t := range set.Template.Together {
			keys = append(keys, t.TopologyKey)
		}
		for _, a := range set.Template.Apart {
			keys = append(keys, a.TopologyKey)
		}
		for _, s := range set.Template.Spread {
			keys = append(keys, s.TopologyKey)
		}
		if t := set.Topology; t != nil {
			keys = append(keys, t.Level, t.SliceLevel)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
