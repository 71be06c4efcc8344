package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// No workload passes the head of a StrictFIFO queue, nor that of another queue while quota is
// kept for it, so nothing is tried of those behind it. That one of them never fits is looked at
// nevertheless: its submitter need not wait to learn it.

// never returns why no member of the class ever fits, with what it waits for; nil when they
// may. The answer is kept until recheckBehind.
func (s *State) never(class *equivalenceClass) *workload.Reason {
	if class.neverKnown {
		return class.never
	}
	w := class.first()
	class.never, class.neverKnown = s.noKind(w), true
	if class.never != nil {
		return class.never
	}
	switch lacks, never := s.neverFits(w); {
	case !never:
	case lacks == "":
		class.never = &workload.Reason{Message: "its queue could not have so much if nothing were in use; it waits until the quota is raised"}
	default:
		class.never = &workload.Reason{Message: lacks + "; it waits until a node is added or changed"}
	}
	return class.never
}

// isBehind reports whether a workload is not tried because of the head of its queue.
func (s *State) isBehind(w *Waiting) bool {
	if w.queue.strict() {
		return w.class.atOpen >= 0 || w.queue.nominations > 0 || w.queue.head() != w
	}
	return w.class.atOpen >= 0 && w.queue.closedToBackfill(s.decidedAt)
}

// reasonBehind is the reason of a workload that is behind the head of its queue.
func (s *State) reasonBehind(w *Waiting) *workload.Reason {
	why := &workload.Reason{Kind: workload.ReasonBehindHead}
	if w.queue.strict() {
		why.Message = fmt.Sprintf("waiting for the head of queue %q: under %s no workload may pass it", w.queue.name, quota.StrictFIFO)
	} else {
		head := w.queue.head()
		why.Message = fmt.Sprintf("%s, the head of queue %q (%s), has waited for quota for more than %s, so no workload may pass it",
			nameFor(w.Workload, head.Workload), w.queue.name, w.queue.strategy(), head.patienceEnd().Sub(head.Since))
	}
	if never := s.never(w.class); never != nil {
		why.Kind, why.Kinds, why.Message = workload.ReasonNeverFits, never.Kinds, never.Message+". Now: "+why.Message
	}
	return why
}

// NeverFit counts the waiting workloads with the reason ReasonNeverFits. It looks at all
// classes.
func (s *State) NeverFit() int {
	count := 0
	for _, q := range s.sorted {
		for _, class := range q.all.list {
			if class.reason != nil && class.atOpen < 0 && class.reason.Kind == workload.ReasonNeverFits || s.isBehind(class.members[class.Len()-1]) && s.never(class) != nil {
				count += class.Len()
			}
		}
	}
	return count
}

// recheckBehind has the reasons of those reported again that are behind a head and never fit
// any more, or now may, because nodes, clusters or namespaces are others.
func (d *decision) recheckBehind() {
	s := d.state
	if e := &s.events; len(e.reshaped) == 0 && !e.clusterAdded && !e.clustersChanged && !e.namespaces {
		return
	}
	all, more := s.events.clusterAdded || s.events.clustersChanged || s.events.namespaces, false
	for _, q := range s.sorted {
		for _, class := range q.all.list {
			if !all && class.neverKnown && class.compared && (class.never != nil) == class.comparedAs && !d.mayChangeNever(class) {
				continue
			}
			class.neverKnown = false
			if !s.isBehind(class.members[len(class.members)-1]) {
				continue
			}
			is := s.never(class) != nil
			if class.compared && is == class.comparedAs {
				continue
			}
			class.compared, class.comparedAs = true, is
			for _, w := range class.members {
				if w.Reported && w.Never != is && s.isBehind(w) {
					w.Reported, more = false, true
					s.unreported = append(s.unreported, w)
				}
			}
		}
	}
	if more {
		slices.SortStableFunc(s.unreported, before)
	}
}

// mayChangeNever reports whether another shape of nodes may change that a class never fits: a
// node comes and goes, and there may be thousands of classes.
func (d *decision) mayChangeNever(class *equivalenceClass) bool {
	if class.never != nil && len(class.never.Kinds) > 0 {
		return true // of a cluster without nodes no kind counts
	}
	o := class.signature.smallest().options[class.queue]
	return o == nil || slices.ContainsFunc(o.flavored, func(f *flavoredSignature) bool { return d.reoffered[f] })
}
