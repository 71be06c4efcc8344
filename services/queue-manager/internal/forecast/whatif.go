package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
)

// apart is how far two starts have to be from each other to differ: run times are learned,
// not known.
const apart = time.Second

// Configure returns the configuration that a queues file would make with the objects that
// were applied.
type Configure func(ctx context.Context, file []byte) (Settings, error)

// WhatIf plays the live state forward with and without a change. It writes nothing.
// A panic ends this answer only: the leader goes on.
func (f *Forecaster) WhatIf(ctx context.Context, r query.WhatIfRequest) (answer query.WhatIfAnswer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			f.Logger.Error("cannot try a change", zap.Any("cause", cause), zap.ByteString("stack", debug.Stack()))
			err = errors.New("cannot try this change: internal error; see the log of queue-manager")
		}
	}()
	if err := checkWhatIf(r); err != nil {
		return query.WhatIfAnswer{}, err
	}
	_, version, err := f.Store.Waiting(ctx)
	if err != nil {
		return query.WhatIfAnswer{}, err
	}
	live, err := f.Store.LiveState(ctx, mostOfQueue, mostWaiting)
	if err != nil {
		return query.WhatIfAnswer{}, err
	}
	before := snapshotOf(f.Now(), live)
	after, err := f.change(ctx, before, r)
	if err != nil {
		return query.WhatIfAnswer{}, err
	}
	f.learning.Lock()
	defer f.learning.Unlock()
	began := time.Now()
	bounds := estimate.Bounds{Ends: mostWhatIfEnds, Horizon: horizon, Enough: func() bool {
		return ctx.Err() != nil || time.Since(began) > mostWhatIfTime
	}}
	without, err := estimate.FastForward(before, &f.history, bounds)
	if err != nil {
		return query.WhatIfAnswer{}, err
	}
	with, err := estimate.FastForward(after, &f.history, bounds)
	if err != nil {
		return query.WhatIfAnswer{}, err
	}
	answer = compare(before, after, without, with)
	answer.MadeAt, answer.Version, answer.LeftOut = before.Now, version, live.Left
	return answer, nil
}

// change applies a change to a copy of a snapshot.
func (f *Forecaster) change(ctx context.Context, s estimate.Snapshot, r query.WhatIfRequest) (estimate.Snapshot, error) {
	s.Nodes, s.Waiting, s.Running = slices.Clone(s.Nodes), slices.Clone(s.Waiting), slices.Clone(s.Running)
	if r.QueuesFile != "" {
		settings, err := f.Configure(ctx, []byte(r.QueuesFile))
		if err != nil {
			return s, fmt.Errorf("queues file: %w", err)
		}
		s.Queues, s.Policy = settings.Queues, settings.Policy
	}
	for _, change := range r.Workloads {
		if err := edit(&s, change); err != nil {
			return s, err
		}
	}
	for i := range s.Waiting {
		w := &s.Waiting[i]
		if queueNamed(s.Queues, w.Queue) < 0 {
			return s, fmt.Errorf("workload %s: there would be no queue %q; want one of the queues of `muster get queues`, or of the queues file", w.Title(), w.Queue)
		}
	}
	for _, drained := range r.Drain {
		if err := drain(&s, drained); err != nil {
			return s, err
		}
	}
	for i, added := range r.AddNodes {
		if err := addNodes(&s, i, added); err != nil {
			return s, err
		}
	}
	s.Submit = r.Submit
	return s, nil
}

// edit changes a workload that waits. It refuses a move that queue-manager would refuse.
func edit(s *estimate.Snapshot, change query.WorkloadChange) error {
	waiting := s.Waiting
	i := slices.IndexFunc(waiting, func(w workload.Record) bool { return w.ID == change.ID })
	if i < 0 {
		return fmt.Errorf("workload %s does not wait, or is too far back in its queue: only the priority and queue of a waiting one can be changed", change.ID)
	}
	if change.Priority != nil {
		waiting[i].Priority = *change.Priority
	}
	if change.Queue == "" || change.Queue == waiting[i].Queue {
		return nil
	}
	from, to := queueNamed(s.Queues, waiting[i].Queue), queueNamed(s.Queues, change.Queue)
	if from >= 0 && to >= 0 { // else there is a better error below
		if why := state.RefuseMove(&waiting[i].Workload, s.Queues[from], s.Queues[to], s.Policy.Priorities); why != "" {
			return fmt.Errorf("workload %s: %s%s", waiting[i].Title(), event.NotMoved, why)
		}
	}
	waiting[i].Queue = change.Queue
	return nil
}

func queueNamed(queues []state.Queue, name string) int {
	return slices.IndexFunc(queues, func(q state.Queue) bool { return q.Name == name })
}

// drain takes a node away, and evicts the gangs that have pods there.
func drain(s *estimate.Snapshot, name query.NodeName) error {
	i := nodeIndex(s.Nodes, name)
	if i < 0 {
		return noNode(name)
	}
	s.Nodes[i].Cordoned = true
	for k := range s.Running {
		w := &s.Running[k]
		on := slices.ContainsFunc(w.Placements, func(p workload.Placement) bool { return p.Node == name.Name })
		if w.Cluster == name.Cluster && on && !w.Phase.Final() && w.Phase != workload.Cancelling {
			w.Phase, w.EvictAt = workload.Evicting, s.Now
			w.Reason = &workload.Reason{Kind: workload.ReasonDrained, Message: "node " + name.Name + " is drained"}
		}
	}
	return nil
}

// addNodes adds empty nodes that are like a present one.
func addNodes(s *estimate.Snapshot, group int, added query.NodesLike) error {
	i := nodeIndex(s.Nodes, added.Like)
	if i < 0 {
		return noNode(added.Like)
	}
	for n := range added.Count {
		node := s.Nodes[i]
		node.Name = fmt.Sprintf("added-%d-%d", group, n)
		node.Ready, node.Cordoned, node.Unmanaged = true, false, resource.List{}
		s.Nodes = append(s.Nodes, node)
	}
	return nil
}

func nodeIndex(nodes []capacity.Node, name query.NodeName) int {
	return slices.IndexFunc(nodes, func(n capacity.Node) bool { return n.Cluster == name.Cluster && n.Name == name.Name })
}

func noNode(name query.NodeName) error {
	return fmt.Errorf("there is no node %q in cluster %q: see `muster get nodes`", name.Name, name.Cluster)
}

// compare lists what differs.
func compare(before, after estimate.Snapshot, without, with estimate.Forecast) query.WhatIfAnswer {
	answer := query.WhatIfAnswer{Workloads: []query.WhatIfWorkload{}, Cut: without.Cut || with.Cut}
	add := func(w *workload.Workload, found query.WhatIfWorkload) {
		found.ID, found.Namespace, found.Name, found.Queue = w.ID, w.Namespace, w.Name, w.Queue
		answer.Workloads = append(answer.Workloads, found)
	}
	for i := range after.Waiting {
		w := &after.Waiting[i]
		from, to := without.Starts[w.ID], with.Starts[w.ID]
		if from.IsZero() == to.IsZero() && to.Sub(from).Abs() < apart {
			answer.Same++
			continue
		}
		add(&w.Workload, query.WhatIfWorkload{Before: from, After: to})
	}
	for i := range after.Running {
		w := &after.Running[i]
		evicted := slices.Contains(with.Evicted, w.ID) && !slices.Contains(without.Evicted, w.ID)
		if evicted || w.Phase == workload.Evicting && before.Running[i].Phase != workload.Evicting {
			add(&w.Workload, query.WhatIfWorkload{Evicted: true, After: with.Starts[w.ID]})
		}
	}
	for i := range after.Submit {
		w := &after.Submit[i]
		add(w, query.WhatIfWorkload{Submitted: true, After: with.Starts[w.ID], Refused: with.Refused[w.ID]})
	}
	slices.SortStableFunc(answer.Workloads, func(a, b query.WhatIfWorkload) int {
		if a.After.IsZero() != b.After.IsZero() {
			return cmp.Compare(b.After.Unix(), a.After.Unix()) // unknown ones last
		}
		return a.After.Compare(b.After)
	})
	return answer
}

// checkWhatIf bounds a request before anything is done for it.
func checkWhatIf(r query.WhatIfRequest) error {
	for _, list := range []struct {
		name string
		size int
	}{{"addNodes", len(r.AddNodes)}, {"drain", len(r.Drain)}, {"workloads", len(r.Workloads)}, {"submit", len(r.Submit)}} {
		if list.size > query.MaxWhatIfChanges {
			return fmt.Errorf("%s: %d entries; want at most %d", list.name, list.size, query.MaxWhatIfChanges)
		}
	}
	nodes, pods := 0, 0
	for i, added := range r.AddNodes {
		if added.Count < 1 || added.Count > query.MaxWhatIfNodes {
			return fmt.Errorf("addNodes[%d].count %d: want 1 to %d", i, added.Count, query.MaxWhatIfNodes)
		}
		nodes += added.Count
	}
	for i, w := range r.Submit {
		for _, set := range w.PodSets {
			if set.Count < 0 || set.Count > query.MaxWhatIfPods {
				return fmt.Errorf("submit[%d]: pod set %q has %d pods; want 0 to %d", i, set.Name, set.Count, query.MaxWhatIfPods)
			}
			pods += set.Count
		}
	}
	switch {
	case nodes > query.MaxWhatIfNodes:
		return fmt.Errorf("addNodes: %d nodes in sum; want at most %d", nodes, query.MaxWhatIfNodes)
	case pods > query.MaxWhatIfPods:
		return fmt.Errorf("submit: %d pods in sum; want at most %d", pods, query.MaxWhatIfPods)
	case len(r.QueuesFile) > query.MaxWhatIfFile:
		return fmt.Errorf("queuesFile: %d bytes; want at most %d", len(r.QueuesFile), query.MaxWhatIfFile)
	}
	return nil
}
