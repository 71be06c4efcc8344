package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// resume suggests to resume a held workload, or a held queue.
func (e *explainer) resume() {
	if e.w.held == nil {
		return
	}
	w := e.w.Workload
	if e.w.Held != "" {
		if e.works(func(s *State) {
			again := e.w.resubmitted(e.s)
			again.Held = ""
			s.Enqueue(again)
		}) {
			e.suggest(workload.Change{Kind: workload.ChangeResume}, "when the workload is not held any more")
		}
		return
	}
	if e.worksWith(e.config().Resumed(w.Namespace, w.Queue, e.w.queue.name)) {
		e.suggest(workload.Change{Kind: workload.ChangeResume}, "when queue %q is not held any more", w.Queue)
	}
}

// priority suggests a higher priority to a workload behind others.
func (e *explainer) priority() {
	if e.w.class == nil || e.found.Position <= 1 {
		return
	}
	highest := e.w.queue.all.list[0].priority
	if highest == 1<<31-1 {
		return
	}
	if e.works(func(s *State) { e.replace(s, func(w *workload.Workload) { w.Priority = highest + 1 }) }) {
		e.suggest(workload.Change{Kind: workload.ChangePriority, Priority: highest + 1}, "a priority of %d or more", highest+1)
	}
}

// replace enqueues a changed copy of the workload in its place.
func (e *explainer) replace(s *State, change func(*workload.Workload)) {
	waiting := e.w.resubmitted(e.s)
	changed := *e.w.Workload
	changed.PodSets = slices.Clone(changed.PodSets)
	change(&changed)
	waiting.Workload = &changed
	s.Enqueue(waiting)
}

// fewerPods suggests fewer pods in one of the pod sets of workers.
func (e *explainer) fewerPods() {
	for i, set := range e.w.Workload.PodSets {
		if set.Role != workload.RoleWorker || set.Count < 2 {
			continue
		}
		fewer := least(set.Count-1, func(n int) bool {
			return e.works(func(s *State) { e.replace(s, func(w *workload.Workload) { w.PodSets[i].Count -= n }) })
		})
		if fewer > 0 {
			e.suggest(workload.Change{Kind: workload.ChangeFewerPods, PodSet: set.Name, Pods: fewer},
				"%s fewer in pod set %q (%d instead of %d)", pods(fewer), set.Name, set.Count-fewer, set.Count)
		}
	}
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// moreQuota raises what is missing of the queue's own quota, for each assignment of
// flavors.
func (e *explainer) moreQuota() {
	o := e.s.optionsOf(e.w.queue, e.w.signature.smallest())
	for _, a := range e.w.queue.quota.Assess(o.assignments) {
		if a.Mode == quota.Within {
			continue
		}
		config, raises := e.config(), []workload.QuotaRaise{}
		var texts []string
		for _, c := range a.Charges {
			lacking := c.Amount - e.w.queue.quota.Available(c.FlavorResource)
			if c.Flavor == "" || lacking <= 0 {
				continue
			}
			config = config.Raised(e.w.queue.name, c.Flavor, c.Resource, lacking)
			raises = append(raises, workload.QuotaRaise{Queue: e.w.queue.name, Flavor: c.Flavor, Resource: c.Resource, Amount: lacking})
			texts = append(texts, fmt.Sprintf("%s %s of flavor %q", resource.Format(c.Resource, lacking), c.Resource, c.Flavor))
		}
		if len(raises) > 0 && e.worksWith(config) {
			e.suggest(workload.Change{Kind: workload.ChangeMoreQuota, Quota: raises}, "more quota in ClusterQueue %q: %s", e.w.queue.name, strings.Join(texts, ", "))
			return
		}
	}
}

// moreNodes adds empty nodes of each kind that is there.
func (e *explainer) moreNodes() {
	most := min(e.w.Workload.Pods(), 64)
	for _, cluster := range e.s.clustersFor(e.w) {
		for _, n := range kinds(e.s.fleets[cluster].Views()) {
			more := func(count int) func(*State) {
				return func(s *State) {
					for i := range count {
						s.SetNode(NodeLike(n, i))
					}
				}
			}
			count := 0
			for try := 1; count == 0 && try <= most; try *= 2 {
				if e.works(more(try)) {
					count = try/2 + least(try-try/2, func(k int) bool { return e.works(more(try/2 + k)) })
				}
			}
			nodes := "nodes"
			if count == 1 {
				nodes = "node"
			}
			if count > 0 {
				e.suggest(workload.Change{Kind: workload.ChangeMoreNodes, Cluster: cluster, Like: n.Name, Nodes: count},
					"%d more empty %s like %s (%s) in cluster %s", count, nodes, n.Name, n.Allocatable, cluster)
			}
		}
	}
}

// NodeLike returns a node like the given one, but empty, ready and with another name.
func NodeLike(n capacity.Node, i int) capacity.Node {
	old := n.Name
	n.Name = fmt.Sprintf("%s-more-%d", n.Name, i)
	n.Ready, n.Cordoned, n.Unmanaged, n.UsedPorts = true, false, nil, nil
	n.Labels = maps.Clone(n.Labels)
	if n.Labels[capacity.HostnameLabel] == old {
		n.Labels[capacity.HostnameLabel] = n.Name
	}
	return n
}

// kinds returns one node of each kind, by name: nodes of a kind have the same amounts,
// taints and labels, except labels with the node's name.
func kinds(views []placement.View) []capacity.Node {
	seen := map[string]bool{}
	var found []capacity.Node
	for _, v := range views {
		labels := maps.Clone(v.Node.Labels)
		maps.DeleteFunc(labels, func(_, value string) bool { return value == v.Node.Name })
		key := fmt.Sprint(labels, v.Node.Taints, v.Node.Allocatable) // fmt prints maps in order
		if v.Node.Ready && !seen[key] && len(found) < nodeKinds {
			seen[key] = true
			found = append(found, v.Node)
		}
	}
	return found
}

// afterEnd lets started gangs end: single ones that are enough, else the fewest from the
// first, terminating gangs before those that have run the longest.
func (e *explainer) afterEnd() {
	ends := slices.Collect(maps.Values(e.s.started))
	slices.SortFunc(ends, func(a, b *Started) int {
		if a.Terminating != b.Terminating {
			if a.Terminating {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Admitted.Compare(b.Admitted), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
	})
	ends = ends[:min(len(ends), mostEnds)]
	after := func(gone ...*Started) bool {
		return e.works(func(s *State) {
			for _, g := range gone {
				s.Leave(g.Workload.ID)
				s.Release(g.Workload.ID)
			}
		})
	}
	singles := 0
	for i := 0; i < len(ends) && i < mostTrials/4 && singles < singleEnds; i++ {
		if after(ends[i]) {
			singles++
			e.suggest(workload.Change{Kind: workload.ChangeAfterEnd, Workloads: ids(ends[i : i+1]), Foreign: e.foreign(ends[i : i+1])}, "after the end of %s", nameFor(e.w.Workload, ends[i].Workload))
		}
	}
	if singles > 0 {
		return
	}
	if n := least(len(ends), func(n int) bool { return after(ends[:n]...) }); n > 1 {
		e.suggest(workload.Change{Kind: workload.ChangeAfterEnd, Workloads: ids(ends[:n]), Foreign: e.foreign(ends[:n])}, "after the end of %d workloads, of which %s is the last", n, e.lastOf(ends[:n]))
	}
}

func (e *explainer) foreign(gangs []*Started) []workload.ID {
	return foreign(e.w.Workload, workloadsOf(gangs)...)
}

// lastOf names the last of some gangs.
func (e *explainer) lastOf(gangs []*Started) string {
	last := gangs[len(gangs)-1].Workload
	if last.Queue == e.w.Workload.Queue {
		return last.Title()
	}
	return "one of another queue"
}

func ids(gangs []*Started) []workload.ID {
	all := make([]workload.ID, len(gangs))
	for i, g := range gangs {
		all[i] = g.Workload.ID
	}
	return all
}
