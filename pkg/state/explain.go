package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/workload"
)

// Present returns, of workloads that lack quota or places, why that is so now.
// Their records have the reason of the last look at them.
func (s *State) Present(now time.Time, of ...workload.ID) map[workload.ID]*workload.Reason {
	return admission.CurrentReasons(s.admission, now, of...)
}

// Searched counts the searches of this term.
func (s *State) Searched() admission.Searched { return s.admission.Searched() }

// NeverFit counts the waiting workloads that no change of what runs could admit.
func (s *State) NeverFit() int { return s.admission.NeverFit() }

// Handover is a workload that waits, for another goroutine to explain why.
type Handover struct {
	// Known is what there is to report of one that does not wait.
	Known  workload.Explanation
	Waits  bool
	asked  admission.Question
	worded worded
}

// worded is what the state knows of a waiting workload that admission does not.
type worded struct {
	grows   *growth
	backoff *workload.Reason // with its cause; nil while it is in none
	asked   *workload.Reason // with the pods and the progress; nil without a request
}

func wordedOf(e *entry) (w worded) {
	if e.attemptState != nil && e.growth != nil {
		w.grows = &growth{sets: slices.Clone(e.growth.sets)}
	}
	if e.Reason != nil && e.Reason.Kind == workload.ReasonBackoff {
		w.backoff = e.Reason
	}
	if hasRequest(e) && e.Reason != nil && e.Reason.Kind == workload.ReasonProvisioning {
		w.asked = e.Reason
	}
	return w
}

// reason returns why the workload waits, with admission's reason.
func (w worded) reason(decided workload.Reason) workload.Reason {
	switch {
	case w.grows != nil:
		return w.grows.reason(decided)
	case w.backoff != nil && decided.Kind == workload.ReasonBackoff:
		return *w.backoff
	case w.asked != nil && decided.Kind == workload.ReasonProvisioning:
		return *w.asked
	}
	return decided
}

// HandOver returns what another goroutine needs to explain why a workload waits. who is
// for whom it is asked: of a workload that he could not have submitted he gets an answer as if
// it were not there; empty is for an operator.
func (s *State) HandOver(id workload.ID, who string, now time.Time) (Handover, error) {
	e := s.live.Get(id)
	if e == nil || who != "" && !s.queues[e.Queue].Rules.MaySubmit(who, e.Namespace) {
		return Handover{}, fmt.Errorf("workload %s is not live: it has ended or was never submitted", id)
	}
	asked, waits := s.admission.Ask(id)
	if !waits {
		return Handover{Known: s.standing(e, now)}, nil
	}
	h := Handover{Known: asked.Known, Waits: true, asked: asked, worded: wordedOf(e)}
	h.Known.Reason, h.Known.Eviction = h.worded.reason(h.Known.Reason), s.evictionOf(e, now)
	return h, nil
}

// TakeSnapshot begins to take what questions are answered on; see admission.State.BeginSnapshot.
func (s *State) TakeSnapshot(waiting int) *admission.SnapshotBuilder {
	return s.admission.BeginSnapshot(waiting)
}

// Outdated reports whether the state contradicts it; see admission.Outdated.
func (h Handover) Outdated(s *admission.State) bool { return admission.Outdated(s, h.asked) }

// Answer returns why it waits; see admission.Answer.
func (h Handover) Answer(s *admission.State, complete bool, now time.Time, enough func() bool) workload.Explanation {
	explained := admission.Answer(s, complete, h.asked, now, enough)
	explained.Reason, explained.Eviction = h.worded.reason(explained.Reason), h.Known.Eviction
	return explained
}

// Certify proves that it fits nowhere, or returns why there is no proof; see
// admission.Certify. The state is one that Answer has been called with.
func (h Handover) Certify(s *admission.State, enough func() bool) (*certificate.Document, string) {
	return admission.Certify(s, h.Known.Workload, enough)
}

// Certify proves that a waiting workload fits nowhere, or returns why there is no proof.
func (s *State) Certify(id workload.ID) (*certificate.Document, string) {
	return admission.Certify(s.admission, id, func() bool { return false })
}

// Explain returns why a workload waits and what would admit it. Of one that does not
// wait it returns where it stands.
func (s *State) Explain(id workload.ID, now time.Time) (workload.Explanation, error) {
	e := s.live.Get(id)
	if e == nil {
		return workload.Explanation{}, fmt.Errorf("workload %s is not live: it has ended or was never submitted", id)
	}
	if explained, waits := admission.Explain(s.admission, id, now); waits {
		explained.Reason, explained.Eviction = wordedOf(e).reason(explained.Reason), s.evictionOf(e, now)
		return explained, nil
	}
	return s.standing(e, now), nil
}

// standing returns the reason of a workload that does not wait and, if it has started, what it
// would lose by an eviction.
func (s *State) standing(e *entry, now time.Time) workload.Explanation {
	explained := workload.Explanation{Workload: e.ID, Queue: s.admission.QueueOf(&e.Workload).Name, Eviction: s.evictionOf(e, now)}
	if e.Reason != nil {
		explained.Reason = *e.Reason
	}
	return explained
}

// evictionOf returns what a workload would lose by an eviction; nil unless it has started.
func (s *State) evictionOf(e *entry, now time.Time) *workload.EvictionCost {
	cost, _, started := s.admission.EvictionCost(e.ID, now)
	if !started || !e.Phase.Started() {
		return nil
	}
	return &cost
}
