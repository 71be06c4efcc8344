package admission

import (
	"container/heap"
	"maps"
	"time"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Snapshot is what another goroutine needs to answer questions about a state: nodes,
// gangs that have places, quota, and the first of those that wait. Nothing in it is
// changed by the state that it was taken of. It costs O(nodes + started + most).
type Snapshot struct {
	config   quota.Config
	history  map[string]quota.History
	nodes    []observedNode
	started  []Started
	waiting  []Waiting
	fought   map[workload.ID]map[workload.ID]bool
	decided  time.Time
	complete bool
}

type observedNode struct {
	node  capacity.Node
	extra resource.List
}

// Snapshot returns a snapshot with about so many of the waiting at the most: of each
// queue the first in line.
func (s *State) Snapshot(most int) *Snapshot {
	sn := &Snapshot{
		config: s.tree.Config(), history: make(map[string]quota.History, len(s.sorted)), decided: s.decided,
		fought: make(map[workload.ID]map[workload.ID]bool, len(s.fought)),
	}
	for preemptor, victims := range s.fought {
		sn.fought[preemptor] = maps.Clone(victims)
	}
	for _, cluster := range s.clusters {
		for _, o := range s.fleets[cluster].Observed() {
			sn.nodes = append(sn.nodes, observedNode{o.Node, o.Extra})
		}
	}
	sn.started = make([]Started, 0, len(s.started))
	for _, q := range s.sorted {
		sn.history[q.name] = q.quota.History()
		for _, g := range q.started {
			same := *g
			same.queue, same.charges = nil, nil
			sn.started = append(sn.started, same)
		}
	}
	for _, c := range s.claims {
		w := s.asked(c.waiting)
		w.Claiming = true
		sn.waiting = append(sn.waiting, w)
	}
	each := max(1, most/max(1, len(s.sorted)))
	for _, q := range s.sorted {
		for _, w := range q.firstInLine(each) {
			sn.waiting = append(sn.waiting, s.asked(w))
		}
	}
	sn.complete = len(sn.waiting)+len(s.later) >= s.waiting.Len()
	return sn
}

// asked is a copy of one that waits, as its caller would enter it now.
func (s *State) asked(w *Waiting) Waiting {
	c := w.anew(s)
	same := *w.Workload // the caller's may change
	c.Workload, c.Told = &same, true
	return c
}

// State returns a state that decides as the one did of which the snapshot was taken,
// as far as the snapshot goes, and in which a decision has been made.
func (sn *Snapshot) State() (*State, error) {
	tree, err := quota.New(sn.config)
	if err != nil {
		return nil, err
	}
	s := NewState(tree)
	s.Reserve(len(sn.waiting))
	for name, history := range sn.history {
		s.queue(name).quota.SetHistory(history)
	}
	for _, n := range sn.nodes {
		if len(n.extra) > 0 {
			s.SetExtra(NodeKey{n.node.Cluster, n.node.Name}, n.extra)
		}
		s.SetNode(n.node)
	}
	for _, g := range sn.started {
		s.Start(g)
	}
	s.fought = make(map[workload.ID]map[workload.ID]bool, len(sn.fought))
	for preemptor, victims := range sn.fought {
		s.fought[preemptor] = maps.Clone(victims)
	}
	for _, w := range sn.waiting {
		same := *w.Workload
		w.Workload = &same
		s.Enqueue(w)
	}
	Decide(s, sn.decided)
	return s, nil
}

// Complete reports whether all who stand in line are in the snapshot.
func (sn *Snapshot) Complete() bool { return sn.complete }

// firstInLine returns the first of a queue's waiting, in order, without sorting all.
func (q *queue) firstInLine(most int) []*Waiting {
	line := &lineHeap{queue: q}
	if q.all.Len() > 0 {
		line.list = append(line.list, inLineAt{})
	}
	first := make([]*Waiting, 0, min(most, 64))
	for len(line.list) > 0 && len(first) < most {
		at := heap.Pop(line).(inLineAt)
		b := q.all.list[at.bucket]
		first = append(first, b.members[at.member])
		if at.member == 0 { // of a bucket: those below it in the heap of buckets
			for _, below := range []int{2*at.bucket + 1, 2*at.bucket + 2} {
				if below < q.all.Len() {
					heap.Push(line, inLineAt{bucket: below})
				}
			}
		}
		for _, below := range []int{2*at.member + 1, 2*at.member + 2} {
			if below < b.Len() {
				heap.Push(line, inLineAt{at.bucket, below})
			}
		}
	}
	return first
}

// inLineAt is a place in the heap of a queue's buckets, and in that of its members.
type inLineAt struct{ bucket, member int }

// lineHeap orders places by who is there.
type lineHeap struct {
	queue *queue
	list  []inLineAt
}

func (h *lineHeap) at(i int) *Waiting {
	return h.queue.all.list[h.list[i].bucket].members[h.list[i].member]
}
func (h *lineHeap) Len() int           { return len(h.list) }
func (h *lineHeap) Less(i, j int) bool { return h.queue.inLine(h.at(i), h.at(j)) < 0 }
func (h *lineHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *lineHeap) Push(x any)         { h.list = append(h.list, x.(inLineAt)) }
func (h *lineHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
