package forecast

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
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
			err = query.Busy("cannot try this change: internal error; see the log of queue-manager")
		}
	}()
	if err := checkWhatIf(r); err != nil {
		return query.WhatIfAnswer{}, err
	}
	_, version, err := f.Store.Waiting(ctx)
	if err != nil {
		return query.WhatIfAnswer{}, f.unread(err)
	}
	live, err := f.Store.LiveState(ctx, mostOfQueue, mostWaiting)
	if err != nil {
		return query.WhatIfAnswer{}, f.unread(err)
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
	return within(answer, after.Waiting, r.Within), nil
}

// unread is the answer while the live state cannot be read, which has nothing to do with the
// change and may pass.
func (f *Forecaster) unread(err error) error {
	f.Logger.Warn("cannot read the live state for a what-if", zap.Error(err))
	return query.Busy("the live state cannot be read now; try again in a few seconds")
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
	if err := drain(&s, r.Drain, r.DrainAll); err != nil {
		return s, err
	}
	for i, added := range r.AddNodes {
		if err := addNodes(&s, i, added); err != nil {
			return s, err
		}
	}
	for _, w := range r.Submit {
		w.Submitter = cmp.Or(w.Submitter, r.For)
		s.Submit = append(s.Submit, estimate.Submission{Workload: w.Workload, PriorityClass: w.PriorityClass})
	}
	return s, nil
}

// edit changes a workload that waits, or the priority of one that runs. It refuses a move that
// queue-manager would refuse.
func edit(s *estimate.Snapshot, change query.WorkloadChange) error {
	waiting, is := s.Waiting, func(w workload.Record) bool { return w.ID == change.ID }
	i := slices.IndexFunc(waiting, is)
	if i < 0 {
		k := slices.IndexFunc(s.Running, is)
		if k < 0 || change.Priority == nil || change.Queue != "" || len(change.Pods)+len(change.Requests) > 0 {
			return fmt.Errorf("workload %s does not wait, or is too far back in its queue: only the priority of one that runs, and the priority, queue and pods of one that waits can be changed", change.ID)
		}
		s.Running[k].Priority = *change.Priority
		return nil
	}
	if change.Priority != nil {
		waiting[i].Priority = *change.Priority
	}
	if err := resize(&waiting[i].Workload, change.Pods, change.Requests); err != nil {
		return err
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

// resize gives pod sets other numbers of pods, and other requests of each pod.
func resize(w *workload.Workload, counts []query.PodCount, requests []query.PodRequests) error {
	w.PodSets = slices.Clone(w.PodSets)
	for _, c := range counts {
		set, err := podSet(w, c.PodSet)
		if err != nil {
			return err
		}
		set.Count = c.Count
	}
	for _, r := range requests {
		set, err := podSet(w, r.PodSet)
		if err != nil {
			return err
		}
		set.Template.Requests = set.Template.Requests.Clone()
		for name, amount := range r.Amounts {
			if set.Template.Requests[name] = amount; amount == 0 {
				delete(set.Template.Requests, name)
			}
		}
	}
	return nil
}

func podSet(w *workload.Workload, name string) (*workload.PodSet, error) {
	i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("workload %s has no pod set %q; want one of those of `muster describe workload`", w.Title(), name)
	}
	return &w.PodSets[i], nil
}

func queueNamed(queues []state.Queue, name string) int {
	return slices.IndexFunc(queues, func(q state.Queue) bool { return q.Name == name })
}

// drain takes nodes away, and evicts the gangs that have pods there.
func drain(s *estimate.Snapshot, names []query.NodeName, sets []query.NodeSet) error {
	drained := map[query.NodeName]bool{}
	for _, name := range names {
		i := nodeIndex(s.Nodes, name)
		if i < 0 {
			return noNode(name)
		}
		s.Nodes[i].Cordoned, drained[name] = true, true
	}
	for _, set := range sets {
		found := false
		for i := range s.Nodes {
			if n := &s.Nodes[i]; isIn(n, set) {
				found, n.Cordoned, drained[query.NodeName{Cluster: n.Cluster, Name: n.Name}] = true, true, true
			}
		}
		if !found {
			return fmt.Errorf("no node is of cluster %q with label %q of value %q: see `muster get nodes -o json`", set.Cluster, set.Label, set.Value)
		}
	}
	if len(drained) > 0 {
		evictFrom(s, drained)
	}
	return nil
}

// isIn reports whether a node is one of a set.
func isIn(n *capacity.Node, set query.NodeSet) bool {
	value, labelled := n.Labels[set.Label]
	return (set.Cluster == "" || n.Cluster == set.Cluster) && (set.Label == "" || labelled && value == set.Value)
}

// evictFrom evicts the gangs that have pods on some nodes.
func evictFrom(s *estimate.Snapshot, drained map[query.NodeName]bool) {
	for k := range s.Running {
		w := &s.Running[k]
		i := slices.IndexFunc(w.Placements, func(p workload.Placement) bool { return drained[query.NodeName{Cluster: w.Cluster, Name: p.Node}] })
		if i >= 0 && !w.Phase.Final() && w.Phase != workload.Cancelling {
			w.Phase, w.EvictAt = workload.Evicting, s.Now
			w.Reason = &workload.Reason{Kind: workload.ReasonDrained, Message: "node " + w.Placements[i].Node + " is drained"}
		}
	}
}

func nodeIndex(nodes []capacity.Node, name query.NodeName) int {
	return slices.IndexFunc(nodes, func(n capacity.Node) bool { return n.Cluster == name.Cluster && n.Name == name.Name })
}

func noNode(name query.NodeName) error {
	return fmt.Errorf("there is no node %q in cluster %q: see `muster get nodes`", name.Name, name.Cluster)
}
