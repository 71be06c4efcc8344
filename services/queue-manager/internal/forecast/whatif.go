package forecast

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
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
	answer = within(compare(before, after, without, with), r.Within)
	answer.MadeAt, answer.Version, answer.LeftOut = before.Now, version, live.Left
	return answer, nil
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
	if err := resize(&waiting[i].Workload, change.Pods); err != nil {
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

// resize gives pod sets other numbers of pods.
func resize(w *workload.Workload, counts []query.PodCount) error {
	w.PodSets = slices.Clone(w.PodSets)
	for _, c := range counts {
		i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == c.PodSet })
		if i < 0 {
			return fmt.Errorf("workload %s has no pod set %q; want one of those of `muster describe workload`", w.Title(), c.PodSet)
		}
		w.PodSets[i].Count = c.Count
	}
	return nil
}

func queueNamed(queues []state.Queue, name string) int {
	return slices.IndexFunc(queues, func(q state.Queue) bool { return q.Name == name })
}
