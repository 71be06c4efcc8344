package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
)

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
		if same(from, to) {
			answer.Same++
			continue
		}
		add(&w.Workload, query.WhatIfWorkload{Before: from, After: to})
	}
	for i := range after.Running {
		w := &after.Running[i]
		drained := w.Phase == workload.Evicting && before.Running[i].Phase != workload.Evicting
		was, is := slices.Contains(without.Evicted, w.ID), slices.Contains(with.Evicted, w.ID)
		from, to := without.Starts[w.ID], with.Starts[w.ID]
		switch {
		case drained || is && !was:
			add(&w.Workload, query.WhatIfWorkload{Evicted: true, After: to})
		case was && !is && !with.Cut: // a play that was cut may have come to its eviction
			add(&w.Workload, query.WhatIfWorkload{Spared: true, Before: from})
		case was && is && !same(from, to):
			add(&w.Workload, query.WhatIfWorkload{Before: from, After: to})
		}
	}
	for i := range after.Submit {
		w := &after.Submit[i].Workload
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

// same reports whether two starts are the same; a zero one is unknown.
func same(from, to time.Time) bool {
	return from.IsZero() == to.IsZero() && to.Sub(from).Abs() < apart
}

// within leaves what is of other places out of an answer: names, and how many start as before.
func within(answer query.WhatIfAnswer, waiting []workload.Record, places []query.Place) query.WhatIfAnswer {
	if len(places) == 0 {
		return answer
	}
	sees := func(queue, namespace string) bool {
		return slices.ContainsFunc(places, func(p query.Place) bool { return p.Has(queue, namespace) })
	}
	differ := map[workload.ID]bool{}
	for _, w := range answer.Workloads {
		differ[w.ID] = true
	}
	answer.Same = 0
	for i := range waiting {
		if w := &waiting[i]; !differ[w.ID] && sees(w.Queue, w.Namespace) {
			answer.Same++
		}
	}
	all := len(answer.Workloads)
	answer.Workloads = slices.DeleteFunc(answer.Workloads, func(w query.WhatIfWorkload) bool { return !w.Submitted && !sees(w.Queue, w.Namespace) })
	answer.Others = all - len(answer.Workloads)
	answer.Cut, answer.LeftOut = answer.Cut || answer.LeftOut > 0, 0
	return answer
}

// mostName bounds names that only workloads that would be submitted have.
const mostName = 512

// checkWhatIf bounds a request before anything is done for it.
func checkWhatIf(r query.WhatIfRequest) error {
	for _, list := range []struct {
		name string
		size int
	}{{"addNodes", len(r.AddNodes)}, {"drain", len(r.Drain)}, {"drainAll", len(r.DrainAll)}, {"workloads", len(r.Workloads)}, {"submit", len(r.Submit)}} {
		if list.size > query.MaxWhatIfChanges {
			return fmt.Errorf("%s: %d entries; want at most %d", list.name, list.size, query.MaxWhatIfChanges)
		}
	}
	nodes, pods := 0, 0
	for i, added := range r.AddNodes {
		if added.Count < 1 || added.Count > query.MaxWhatIfNodes {
			return fmt.Errorf("addNodes[%d].count %d: want 1 to %d", i, added.Count, query.MaxWhatIfNodes)
		}
		if added.Shape != nil {
			if err := added.Shape.Check(); err != nil {
				return fmt.Errorf("addNodes[%d].shape: %w", i, err)
			}
		}
		nodes += added.Count
	}
	for i, set := range r.DrainAll {
		if set.Cluster == "" && set.Label == "" {
			return fmt.Errorf("drainAll[%d]: want a cluster or a label", i)
		}
	}
	for i, change := range r.Workloads {
		for _, set := range change.Pods {
			if set.Count < 0 || set.Count > query.MaxWhatIfPods {
				return fmt.Errorf("workloads[%d]: pod set %q with %d pods; want 0 to %d", i, set.PodSet, set.Count, query.MaxWhatIfPods)
			}
			pods += set.Count
		}
		if err := checkRequests(change.Requests); err != nil {
			return fmt.Errorf("workloads[%d]: %w", i, err)
		}
	}
	for i, w := range r.Submit {
		if most := max(len(w.PriorityClass), len(w.Submitter)); most > mostName {
			return fmt.Errorf("submit[%d]: a priority class or submitter of %d bytes; want at most %d", i, most, mostName)
		}
		for _, set := range w.PodSets {
			if set.Count < 0 || set.Count > query.MaxWhatIfPods {
				return fmt.Errorf("submit[%d]: pod set %q has %d pods; want 0 to %d", i, set.Name, set.Count, query.MaxWhatIfPods)
			}
			pods += max(1, set.Count) // a set costs something without pods, too
		}
	}
	switch {
	case nodes > query.MaxWhatIfNodes:
		return fmt.Errorf("addNodes: %d nodes in sum; want at most %d", nodes, query.MaxWhatIfNodes)
	case pods > query.MaxWhatIfPods:
		return fmt.Errorf("submit and workloads: %d pods in sum; want at most %d", pods, query.MaxWhatIfPods)
	case len(r.QueuesFile) > query.MaxWhatIfFile:
		return fmt.Errorf("queuesFile: %d bytes; want at most %d", len(r.QueuesFile), query.MaxWhatIfFile)
	}
	return nil
}

// checkRequests bounds other requests of a workload.
func checkRequests(all []query.PodRequests) error {
	if len(all) > query.MaxWhatIfChanges {
		return fmt.Errorf("requests of %d pod sets; want at most %d", len(all), query.MaxWhatIfChanges)
	}
	for _, r := range all {
		if err := r.Check(); err != nil {
			return fmt.Errorf("requests of pod set %q: %w", r.PodSet, err)
		}
	}
	return nil
}
