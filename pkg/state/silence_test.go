package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// answerAll has watcher and dispatcher answer all questions: no pod is ready.
func (s *stage) answerAll() {
	for _, q := range s.Questions() {
		s.answer(q.Ask, "")
	}
}

// A gang has its whole ready deadline from the end of a silence on, however the silence, the
// deadline and the change of leaders follow each other.
func TestADeadlineCountsFromTheEndOfASilence(t *testing.T) {
	t.Parallel()
	const deadline = time.Minute
	newTerm := func(s *stage) {
		last := s.heardSince(Part{"c", Watcher})
		s.replaceLeader(func() {
			s.SetAnswerTimeout(asksFor)
			s.HeardBefore(&event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 1}}, last, s.now)
			s.HeardBefore(&event.GangStatus{Cluster: "c"}, last, s.now)
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true}, last, s.now)
		})
	}
	for name, test := range map[string]struct {
		silence   func(*stage)  // from the creation of the object to the end of the silence
		newLeader time.Duration // a term begins so long after its end; zero for none
	}{
		"it lasts for long": {silence: func(s *stage) { s.step(time.Hour); s.step(asksFor) }},
		"it begins shortly before the deadline and ends shortly after it": {silence: func(s *stage) {
			s.pass(deadline - 6*time.Second)
			s.step(7 * time.Second)
			s.step(4 * time.Second)
		}},
		"it is over before the deadline": {silence: func(s *stage) {
			s.pass(20 * time.Second)
			s.step(30 * time.Second)
		}},
		"the leader changes after it": {func(s *stage) { s.step(time.Hour); s.step(asksFor) }, 10 * time.Second},
		"the leader changes soon before it ends": {silence: func(s *stage) {
			s.step(time.Hour)
			newTerm(s)
			s.step(time.Second)
		}},
		"the leader changes in a short one": {silence: func(s *stage) {
			s.pass(deadline - 9*time.Second)
			s.now = s.now.Add(10 * time.Second)
			newTerm(s)
			s.step(time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
			s.SetAnswerTimeout(asksFor)
			s.created(false)
			test.silence(s)
			s.hear("c", Watcher, s.now)
			s.hear("c", Dispatcher, s.now)
			s.answerAll()
			ended := s.now
			for s.now.Sub(ended) < deadline-time.Second {
				s.pass(time.Second)
				s.answerAll()
				s.is(workload.Dispatched, "")
				if s.now.Sub(ended) == test.newLeader {
					newTerm(s)
				}
			}
			for range 5 {
				s.pass(time.Second)
				s.answerAll()
			}
			s.is(workload.Evicting, workload.ReasonNotCreated)
		})
	}
}

// A dispatcher that creates nothing answers questions, and reports nothing else. That is no
// silence, however often it is asked.
func TestADispatcherThatOnlyAnswersIsNotSilent(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(600)}}, 3)
	s.SetAnswerTimeout(asksFor)
	s.is(workload.Admitted, "")
	admitted := s.now
	for s.now.Sub(admitted) < 605*time.Second && s.gang().Phase == workload.Admitted {
		s.step(time.Second)
		s.hear("c", Watcher, s.now)
		for _, q := range s.Questions() {
			s.seq++
			s.Gang(&event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID, Answers: q.Ask}, s.now, s.now)
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Answers: q.Ask}, s.now, s.now)
		}
	}
	s.is(workload.Evicting, workload.ReasonNotCreated)
}

// Without a silence a gang that is not ready is evicted at its deadline: neither the time
// between two reports nor that before its admission is one.
func TestADeadlineDoesNotCountAgainWithoutASilence(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 0)
	s.SetAnswerTimeout(asksFor)
	for s.seq < 600 { // no workload is admitted, so the dispatcher has nothing to report
		s.node("n0", nil)
		s.step(asksFor / 2)
	}
	s.node("n1", nil)
	s.node("n2", nil)
	s.step(0)
	s.is(workload.Admitted, "")
	s.step(time.Second)
	s.created(false)
	created := s.now
	for s.now.Sub(created) < time.Minute {
		s.is(workload.Dispatched, "")
		s.step(asksFor / 2)
		s.hear("c", Watcher, s.now)
		s.hear("c", Dispatcher, s.now)
	}
	s.answerAll()
	s.is(workload.Evicting, workload.ReasonNotCreated)
}
