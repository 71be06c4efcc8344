package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Bounds of the work on one explanation.
const (
	nodeKinds  = 8   // kinds of nodes that are suggested
	mostEnds   = 256 // started gangs whose end is tried
	singleEnds = 3   // gangs that are named, the end of one of which is enough
	mostTrials = 64
)

// Explain says why a workload waits, and the smallest changes each of which would
// admit it now. Every change has been tried: a decision on a copy of the state
// with the change admitted the workload, and on the state it would, too, as long
// as nothing else happens. That takes time, so it is for when
// somebody asks. It reports false for a workload that does not wait. The state
// stays as it is.
func Explain(s *State, id workload.ID, now time.Time) (workload.Explanation, bool) {
	return explain(s, id, now, func() bool { return false })
}

// explain is Explain until there is enough.
func explain(s *State, id workload.ID, now time.Time, enough func() bool) (workload.Explanation, bool) {
	w := s.waiting.Get(id)
	if w == nil {
		return workload.Explanation{}, false
	}
	e := &explainer{s: s, w: w, now: now, enough: enough, found: workload.Explanation{
		Workload: id, Queue: w.queue.name, Position: s.Position(id), Reason: *s.reason(w),
	}}
	for _, b := range w.queue.all.list {
		e.found.Waiting += b.Len()
	}
	if present, ok := Present(s, now, id)[id]; ok {
		e.found.Reason = *present
	}
	e.resume()
	e.priority()
	e.fewerPods()
	e.moreQuota()
	e.moreNodes()
	e.afterEnd()
	return e.found, true
}

type explainer struct {
	s      *State
	w      *Waiting
	now    time.Time
	enough func() bool
	found  workload.Explanation
	trials int
}

// works tries a change by a decision.
func (e *explainer) works(change func(*State)) bool { return e.try(nil, change) }

// worksWith tries another configuration by a decision.
func (e *explainer) worksWith(config quota.Config) bool { return e.try(&config, nil) }

func (e *explainer) try(config *quota.Config, change func(*State)) bool {
	if e.trials++; e.trials > mostTrials || e.enough() {
		e.found.Partial = true
		return false
	}
	return e.s.trial(e.w.Workload.ID, e.now, config, change)
}

func (e *explainer) config() quota.Config { return e.s.tree.Config() }

func (e *explainer) suggest(c workload.Change, format string, args ...any) {
	c.Message = fmt.Sprintf(format, args...)
	e.found.Changes = append(e.found.Changes, c)
}

// least returns the smallest n from 1 to most for which enough holds, given that
// it holds for all larger ones; 0 when it does not hold for most.
func least(most int, enough func(int) bool) int {
	if most < 1 || !enough(most) {
		return 0
	}
	low, high := 1, most
	for low < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

func (e *explainer) resume() {
	if e.w.held == nil {
		return
	}
	w := e.w.Workload
	if e.worksWith(e.config().Resumed(w.Namespace, w.Queue, e.w.queue.name)) {
		e.suggest(workload.Change{Kind: workload.ChangeResume}, "when queue %q is not held any more", w.Queue)
	}
}

// priority is of use to one that stands behind others.
func (e *explainer) priority() {
	if e.w.bucket == nil || e.found.Position <= 1 {
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

// replace has a changed copy of the workload wait in its stead.
func (e *explainer) replace(s *State, change func(*workload.Workload)) {
	waiting := e.w.anew(e.s)
	changed := *e.w.Workload
	changed.PodSets = slices.Clone(changed.PodSets)
	change(&changed)
	waiting.Workload = &changed
	s.Enqueue(waiting)
}

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

// moreQuota raises, for each way to assign flavors, what is missing of the own
// queue's quota.
func (e *explainer) moreQuota() {
	o := e.s.optionsOf(e.w.queue, e.w.shape)
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
			e.suggest(workload.Change{Kind: workload.ChangeMoreQuota, Quota: raises}, "more quota in queue %q: %s", e.w.queue.name, strings.Join(texts, ", "))
			return
		}
	}
}

// moreNodes adds empty nodes like those that are there, one kind after the other.
func (e *explainer) moreNodes() {
	most := min(e.w.Workload.Pods(), 64)
	for _, cluster := range e.s.clusters {
		for _, n := range kinds(e.s.fleets[cluster].Views()) {
			more := func(count int) func(*State) {
				return func(s *State) {
					for i := range count {
						s.SetNode(Another(n, i))
					}
				}
			}
			count := 0
			for try := 1; count == 0 && try <= most; try *= 2 {
				if e.works(more(try)) {
					count = try/2 + least(try-try/2, func(k int) bool { return e.works(more(try/2 + k)) })
				}
			}
			if count > 0 {
				e.suggest(workload.Change{Kind: workload.ChangeMoreNodes, Cluster: cluster, Like: n.Name, Nodes: count},
					"%d more of the nodes like %s (%s) in cluster %s, empty", count, n.Name, n.Allocatable, cluster)
			}
		}
	}
}

// Another returns a node like the given one, empty, ready and of another name.
func Another(n capacity.Node, i int) capacity.Node {
	old := n.Name
	n.Name = fmt.Sprintf("%s-more-%d", n.Name, i)
	n.Ready, n.Cordoned, n.Unmanaged, n.UsedPorts = true, false, nil, nil
	n.Labels = maps.Clone(n.Labels)
	if n.Labels[hostnameLabel] == old {
		n.Labels[hostnameLabel] = n.Name
	}
	return n
}

const hostnameLabel = "kubernetes.io/hostname"

// kinds returns one node of each kind, by name: nodes of a kind have the same
// amounts, taints and labels, those aside that tell single nodes apart.
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

// afterEnd lets started gangs end: those alone that are enough, else as many as it
// takes, the ones that are going first and then those that have run the longest.
func (e *explainer) afterEnd() {
	ends := slices.Collect(maps.Values(e.s.started))
	slices.SortFunc(ends, func(a, b *Started) int {
		if a.Going != b.Going {
			if a.Going {
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
