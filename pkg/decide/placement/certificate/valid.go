package certificate

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Valid returns nil when the places have room for the whole gang and obey all of its
// constraints, else an error with what is wrong.
func Valid(nodes []placement.View, w *workload.Workload, places []workload.Placement) error {
	pods := newPods(nodes, w)
	for _, p := range places {
		set := slices.IndexFunc(w.PodSets, func(s workload.PodSet) bool { return s.Name == p.PodSet })
		node := slices.IndexFunc(nodes, func(v placement.View) bool { return v.Node.Name == p.Node })
		if set < 0 || node < 0 || p.Pods <= 0 {
			return fmt.Errorf("place of %d pods of %q on %q: no such pod set, node or number", p.Pods, p.PodSet, p.Node)
		}
		pods[set][node] += p.Pods
	}
	for i, set := range w.PodSets {
		if placed := sum(pods[i]); placed != set.Count {
			return fmt.Errorf("%d of %d pods of %q are placed", placed, set.Count, set.Name)
		}
	}
	for j := range nodes {
		if err := nodeTakes(&nodes[j], w, func(set int) int { return pods[set][j] }); err != nil {
			return err
		}
	}
	return obeys(nodes, w, pods)
}

// table is how many pods of each set are on each node.
type table [][]int

func newPods(nodes []placement.View, w *workload.Workload) table {
	pods := make(table, len(w.PodSets))
	for i := range pods {
		pods[i] = make([]int, len(nodes))
	}
	return pods
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

// nodeTakes returns nil when a node takes these numbers of pods, as far as a
// single node can tell.
func nodeTakes(v *placement.View, w *workload.Workload, pods func(set int) int) error {
	used := resource.List{}
	ports := slices.Clone(v.Ports)
	for i := range w.PodSets {
		t, n := &w.PodSets[i].Template, pods(i)
		if n == 0 {
			continue
		}
		if refusal := v.Node.Refuses(t); refusal != "" {
			return fmt.Errorf("node %s refuses pods of %q: %s", v.Node.Name, w.PodSets[i].Name, refusal)
		}
		used = used.Plus(t.Requests.Times(int64(n)))
		for range n {
			for _, port := range t.HostPorts {
				if slices.ContainsFunc(ports, port.Conflicts) {
					return fmt.Errorf("port %d of node %s is asked for twice", port.Port, v.Node.Name)
				}
			}
			ports = append(ports, t.HostPorts...)
		}
	}
	if !used.FitsIn(v.Free) {
		return fmt.Errorf("node %s has %s free, places ask %s", v.Node.Name, v.Free, used)
	}
	return nil
}

// obeys returns nil when the numbers of pods obey the rules on domains.
func obeys(nodes []placement.View, w *workload.Workload, pods table) error {
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if sum(pods[i]) == 0 {
			continue
		}
		for _, check := range []func([]placement.View, *workload.Workload, int, table) error{together, apart, spread, required, sliced} {
			if err := check(nodes, w, i, pods); err != nil {
				return fmt.Errorf("pod set %q: %w", set.Name, err)
			}
		}
	}
	return nil
}

// broken reports whether a rule is broken that more pods do not mend.
func broken(nodes []placement.View, w *workload.Workload, pods table) bool {
	for i := range w.PodSets {
		if sum(pods[i]) > 0 && (together(nodes, w, i, pods) != nil || apart(nodes, w, i, pods) != nil || required(nodes, w, i, pods) != nil) {
			return true
		}
	}
	return false
}

// domainsOf adds up the pods of sets by the domain of a level; pods on nodes
// that are in none count as bare.
func domainsOf(nodes []placement.View, key string, pods table, sets ...int) (byValue map[string]int, bare int) {
	byValue = map[string]int{}
	for j, v := range nodes {
		for _, set := range sets {
			n := pods[set][j]
			if value, labelled := workload.DomainOf(v.Node.Labels, key); labelled && n > 0 {
				byValue[value] += n
			} else {
				bare += n
			}
		}
	}
	return byValue, bare
}

func indexOf(w *workload.Workload, name string) int {
	return slices.IndexFunc(w.PodSets, func(s workload.PodSet) bool { return s.Name == name })
}

func together(nodes []placement.View, w *workload.Workload, i int, pods table) error {
	for _, t := range w.PodSets[i].Template.Together {
		sets := []int{i}
		for _, name := range t.PodSets {
			if other := indexOf(w, name); other >= 0 && other != i {
				sets = append(sets, other)
			}
		}
		if byValue, bare := domainsOf(nodes, t.TopologyKey, pods, sets...); bare > 0 || len(byValue) > 1 {
			return fmt.Errorf("not in one domain of %q", t.TopologyKey)
		}
	}
	return nil
}

func apart(nodes []placement.View, w *workload.Workload, i int, pods table) error {
	for _, a := range w.PodSets[i].Template.Apart {
		own, _ := domainsOf(nodes, a.TopologyKey, pods, i)
		for _, name := range a.PodSets {
			other := indexOf(w, name)
			if other < 0 {
				continue
			}
			theirs, _ := domainsOf(nodes, a.TopologyKey, pods, other)
			for value, n := range own {
				if other == i && n > 1 || other != i && theirs[value] > 0 {
					return fmt.Errorf("not apart from %q in domain %q of %q", name, value, a.TopologyKey)
				}
			}
		}
	}
	return nil
}

func spread(nodes []placement.View, w *workload.Workload, i int, pods table) error {
	t := &w.PodSets[i].Template
	for _, s := range t.Spread {
		byValue, bare := domainsOf(nodes, s.TopologyKey, pods, i)
		if bare > 0 {
			return fmt.Errorf("on a node without label %q", s.TopologyKey)
		}
		counted := map[string]bool{}
		for j := range nodes {
			n := &nodes[j].Node
			all := n.Selects(t)
			for _, other := range t.Spread {
				_, labelled := n.Labels[other.TopologyKey]
				all = all && labelled
			}
			if all {
				counted[n.Labels[s.TopologyKey]] = true
			}
		}
		least, most := w.PodSets[i].Count, 0
		for value := range counted {
			least, most = min(least, byValue[value]), max(most, byValue[value])
		}
		if len(counted) < s.MinDomains {
			least = 0
		}
		if most-least > max(1, s.MaxSkew) {
			return fmt.Errorf("%d pods in one domain of %q and %d in another", most, s.TopologyKey, least)
		}
	}
	return nil
}

func required(nodes []placement.View, w *workload.Workload, i int, pods table) error {
	t := w.PodSets[i].Topology
	if t == nil || t.Mode != workload.TopologyRequired {
		return nil
	}
	if byValue, bare := domainsOf(nodes, t.Level, pods, i); bare > 0 || len(byValue) > 1 {
		return fmt.Errorf("not in one domain of %q", t.Level)
	}
	return nil
}

func sliced(nodes []placement.View, w *workload.Workload, i int, pods table) error {
	t := w.PodSets[i].Topology
	if t == nil || t.SliceSize <= 1 {
		return nil
	}
	byValue, bare := domainsOf(nodes, t.SliceLevel, pods, i)
	for value, n := range byValue {
		if n%t.SliceSize != 0 {
			return fmt.Errorf("%d pods in domain %q of %q, which makes no whole slices of %d", n, value, t.SliceLevel, t.SliceSize)
		}
	}
	if bare > 0 {
		return fmt.Errorf("on a node without label %q", t.SliceLevel)
	}
	return nil
}
