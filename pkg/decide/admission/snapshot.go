package admission

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
)

// Snapshot is what another goroutine needs to answer questions about a state: nodes,
// started gangs, quota, and the first of the waiting workloads. It shares nothing with
// the state that the state changes.
type Snapshot struct {
	config     quota.Config
	history    map[string]quota.History
	locals     map[string]quota.History // by quota.LocalName
	nodes      []observedNode
	started    []Started
	waiting    []Waiting
	evictedFor pastEvictions
	silent     map[string]time.Time
	uncleared  map[string]bool
	served     map[string]servedKinds
	listed     map[string]bool
	decidedAt  time.Time
	complete   bool
	namespaces *namespaces
	learned    learned
}

type observedNode struct {
	node  capacity.Node
	extra resource.List
}

// resubmittedCopy returns resubmitted with a workload of its own.
func (s *State) resubmittedCopy(w *Waiting) Waiting {
	c := w.resubmitted(s)
	same := *w.Workload // the caller's may change
	c.Workload, c.Reported = &same, true
	return c
}

// State returns a state with the content of the snapshot, on which a decision has been
// made.
func (s *Snapshot) State() (*State, error) {
	tree, err := quota.New(s.config)
	if err != nil {
		return nil, err
	}
	state := NewState(tree)
	state.namespaces, state.served, state.learned = s.namespaces, s.served, s.learned.clone()
	state.Preallocate(len(s.waiting))
	for name, history := range s.history {
		state.queue(name).quota.SetHistory(history)
	}
	for name, history := range s.locals {
		tree.SetPastUsage(quota.PastUsage{Queue: name, History: history})
	}
	slices.SortFunc(s.nodes, func(a, b observedNode) int {
		return cmp.Or(cmp.Compare(a.node.Cluster, b.node.Cluster), cmp.Compare(a.node.Name, b.node.Name))
	})
	for _, n := range s.nodes {
		if len(n.extra) > 0 {
			state.SetExtra(NodeKey{n.node.Cluster, n.node.Name}, n.extra)
		}
		state.SetNode(n.node)
	}
	for _, g := range s.started {
		state.Start(g)
	}
	tree.ForgetUsageChanges()
	state.evictedFor = s.evictedFor.clone()
	for _, cluster := range slices.Sorted(maps.Keys(s.listed)) {
		state.SetCluster(cluster)
	}
	state.SetSilent(s.silent)
	state.SetUncleared(s.uncleared)
	for _, w := range s.waiting {
		if state.started[w.Workload.ID] != nil && !w.Grows {
			continue // it started while the snapshot was taken
		}
		same := *w.Workload
		w.Workload = &same
		state.Enqueue(w)
	}
	if taken := Decide(state, s.decidedAt).Withdrawals; len(taken) > 0 {
		for _, w := range s.waiting {
			if slices.ContainsFunc(taken, func(t Wait) bool { return t.Workload == w.Workload.ID }) {
				same := *w.Workload
				w.Workload, w.Asked, w.Ready = &same, nil, nil
				state.Enqueue(w)
			}
		}
		Decide(state, s.decidedAt) // so that they have a reason
	}
	return state, nil
}

// Complete reports whether the snapshot has all waiting workloads.
func (s *Snapshot) Complete() bool { return s.complete }

// firstWaiting returns the first waiting workloads of a queue, in order, without sorting
// all.
func (q *queue) firstWaiting(most int) []*Waiting {
	places := &placeHeap{queue: q}
	if q.all.Len() > 0 {
		places.list = append(places.list, heapPlace{})
	}
	first := make([]*Waiting, 0, min(most, 64))
	for len(places.list) > 0 && len(first) < most {
		at := heap.Pop(places).(heapPlace)
		class := q.all.list[at.class]
		first = append(first, class.members[at.member])
		if at.member == 0 { // of a class: those below it in the heap of classes
			for _, below := range []int{2*at.class + 1, 2*at.class + 2} {
				if below < q.all.Len() {
					heap.Push(places, heapPlace{class: below})
				}
			}
		}
		for _, below := range []int{2*at.member + 1, 2*at.member + 2} {
			if below < class.Len() {
				heap.Push(places, heapPlace{at.class, below})
			}
		}
	}
	return first
}

// heapPlace is a place in the heap of a queue's classes, and in that of its members.
type heapPlace struct{ class, member int }

// placeHeap orders places by the workloads there.
type placeHeap struct {
	queue *queue
	list  []heapPlace
}

func (h *placeHeap) at(i int) *Waiting {
	return h.queue.all.list[h.list[i].class].members[h.list[i].member]
}
func (h *placeHeap) Len() int           { return len(h.list) }
func (h *placeHeap) Less(i, j int) bool { return h.queue.headOrder(h.at(i), h.at(j)) < 0 }
func (h *placeHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *placeHeap) Push(x any)         { h.list = append(h.list, x.(heapPlace)) }
func (h *placeHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
