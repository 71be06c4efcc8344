package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

const asksFor = 10 * time.Second

// question returns the one open question.
func (s *stage) question() Question {
	s.Helper()
	open := s.Questions()
	if len(open) != 1 {
		s.Fatalf("open questions are %+v, want one", open)
	}
	return open[0]
}

// answer has the watcher and the dispatcher say again what they know.
func (s *stage) answer(ask string, message string) {
	s.seq++
	o := &event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID, Answers: ask}
	for _, pod := range s.pods {
		pod.Attempt = s.gang().Attempt
		o.Pods = append(o.Pods, pod)
	}
	s.Gang(o, s.now, s.now)
	if e := s.live.Get(gangID); e != nil {
		s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: e.Attempt, Created: true, Message: message, Answers: ask}, s.now, s.now)
	}
	s.step(0)
}

// A gang whose pods run, of which nothing was heard, is not torn down: watcher and
// dispatcher are asked first.
func TestWhatWasNotHeardIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers bool // before it is torn down
		runs    bool
		want    workload.Phase
	}{
		"it runs, and the news was lost": {true, true, workload.Running},
		"it does not run":                {true, false, workload.Evicting},
		"no answer":                      {false, false, workload.Dispatched},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
			s.SetAnswerTimeout(asksFor)
			s.created(false)
			s.pass(time.Minute)
			s.is(workload.Dispatched, "")
			if !test.answers {
				s.step(asksFor - time.Second)
				s.is(test.want, "")
				for range 600 {
					s.step(asksFor / 4)
					s.is(test.want, "")
				}
				if reason := s.gang().Reason; reason == nil || !strings.Contains(reason.Message, "the capacity-watcher and dispatcher of cluster c did not answer since") {
					s.Errorf("its reason is %+v", reason)
				}
				return
			}
			q := s.question()
			if test.runs {
				for _, p := range s.gang().Placements {
					for i := range p.Pods {
						name := p.Node + string(rune('a'+i))
						s.pods[name] = event.GangPod{Name: name, PodSet: p.PodSet, Node: p.Node, Phase: "Running", Ready: true}
					}
				}
			}
			s.answer("1/77", "") // of another question
			if !test.runs {
				s.is(workload.Dispatched, "")
			}
			s.answer(q.Ask, "")
			s.is(test.want, "")
		})
	}
}

// The silence of a dispatcher is no verdict on a gang whose object it was to create: it
// may run. What the dispatcher reports when it speaks again decides.
func TestASilentDispatcherTearsNothingDown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		created bool
		want    workload.Phase
	}{
		"it has not created the object": {false, workload.Admitted},
		"it has":                        {true, workload.Dispatched},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
			s.SetAnswerTimeout(asksFor)
			for range 600 {
				s.step(asksFor / 4)
				s.is(workload.Admitted, "")
			}
			if reason := s.gang().Reason; reason == nil || !strings.Contains(reason.Message, "the capacity-watcher and dispatcher of cluster c did not answer since") {
				t.Errorf("its reason is %+v", reason)
			}
			for len(s.Questions()) == 0 { // it is asked from time to time
				s.step(time.Second)
			}
			q := s.question()
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: test.created, Answers: q.Ask}, s.now, s.now)
			s.step(0)
			s.is(test.want, "")
		})
	}
}

// The deadlines of a gang begin again when its cluster answers after a silence: what is to be
// done there was not done meanwhile. Then they end it, once they have passed.
func TestDeadlinesBeginAgainAfterASilence(t *testing.T) {
	t.Parallel()
	const deadline = time.Minute
	for name, test := range map[string]struct {
		begin  func(*stage)
		phase  workload.Phase
		reason workload.ReasonKind
		want   string
	}{
		"to create the object": {func(*stage) {}, workload.Admitted, workload.ReasonNotCreated, "did not create the object"},
		"to be ready":          {func(s *stage) { s.created(false) }, workload.Dispatched, workload.ReasonNotCreated, "1m0s after cluster c answered again"},
		"to heal": {func(s *stage) {
			s.created(true)
			s.loses("workers", "")
		}, workload.Running, workload.ReasonPodLost, "of 3 pods are ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
			s.SetAnswerTimeout(asksFor)
			test.begin(s)
			answer := func() { // that it is as it was
				for _, q := range s.Questions() {
					s.seq++
					o := &event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID, Answers: q.Ask}
					for _, pod := range s.pods {
						pod.Attempt = s.gang().Attempt
						o.Pods = append(o.Pods, pod)
					}
					s.Gang(o, s.now, s.now)
					s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: test.phase != workload.Admitted, Answers: q.Ask}, s.now, s.now)
				}
			}
			for range 600 { // of silence
				s.step(asksFor / 2)
				s.is(test.phase, "")
			}
			for len(s.Questions()) == 0 {
				s.step(time.Second)
			}
			answered := s.now
			answer()
			s.step(0)
			for s.now.Sub(answered) < deadline-time.Second {
				s.pass(time.Second)
				answer()
				s.is(test.phase, "")
			}
			for range 5 {
				s.pass(time.Second)
				answer()
			}
			s.step(0)
			s.is(workload.Evicting, test.reason)
			if message := s.gang().Reason.Message; !strings.Contains(message, test.want) {
				t.Errorf("the reason is %q, want %q in it", message, test.want)
			}
		})
	}
}

// A running gang that was seen broken and has healed since is not evicted when the
// news of that was lost.
func TestALostHealingIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
	s.SetAnswerTimeout(asksFor)
	s.created(true)
	whole := s.pods["headgroup-0"]
	s.loses("headgroup", "")
	s.step(settleTime)
	s.step(time.Hour)
	s.is(workload.Running, "")
	s.pods["headgroup-0"] = whole
	s.answer(s.question().Ask, "")
	s.is(workload.Running, "")
	s.step(time.Hour)
	s.is(workload.Running, "")
	if open := s.Questions(); len(open) != 0 {
		t.Errorf("it is well, and asked for: %+v", open)
	}
}

// An answer that is old counts for nothing: the next absence is asked for again.
func TestAnOldAnswerIsNone(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
	s.SetAnswerTimeout(asksFor)
	s.created(true)
	head := s.pods["headgroup-0"]
	for range 2 {
		s.loses("headgroup", "")
		s.step(settleTime)
		s.step(time.Hour)
		s.is(workload.Running, "")
		s.pods["headgroup-0"] = head
		s.answer(s.question().Ask, "")
	}
	s.is(workload.Running, "")
}

// Of a workload that was to go and holds its places for long, the dispatcher is
// asked.
func TestAReleaseIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.SetAnswerTimeout(asksFor)
	s.created(true)
	s.Cancel(&event.WorkloadCancel{Workload: gangID, Why: "enough"}, s.now)
	s.step(time.Second)
	s.step(releaseInquiryInterval)
	if q := s.question(); q.Workload != gangID || q.Cluster != "c" {
		t.Errorf("asked is %+v", q)
	}
	s.released()
	if s.live.Get(gangID) != nil {
		t.Error("it was released, and is live")
	}
}

// A node of which it was not heard that it is ready again is asked for before its
// gangs lose their places.
func TestANodeIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.SetAnswerTimeout(asksFor)
	s.created(true)
	name := s.place("headgroup")
	s.seq++
	lost := s.nodes[admission.NodeKey{Cluster: "c", Name: name}].Node
	lost.Ready = false
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: s.seq}, Node: lost}, s.now)
	s.step(time.Minute)
	q := s.question()
	if q.Node != name {
		t.Fatalf("asked is %+v, want node %s", q, name)
	}
	s.seq++
	lost.Ready = true
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: s.seq}, Node: lost, Answers: q.Ask}, s.now)
	s.step(time.Hour)
	s.is(workload.Running, "")
	if s.nodes[admission.NodeKey{Cluster: "c", Name: name}].overdue {
		t.Error("the node is ready, and overdue")
	}
}

// A replay meets the answers that were recorded: it numbers the questions as the leader did.
func TestNodesThatAreNotReadyAreAskedAboutInOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	s.SetAnswerTimeout(asksFor)
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprintf("n%d", i))
		s.node(want[i], func(n *capacity.Node) { n.Ready = false })
	}
	s.step(time.Minute)
	var asked []string
	for _, q := range s.Questions() {
		asked = append(asked, q.Node)
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked about nodes %v, want %v", asked, want)
	}
}

// While the watcher answers each question a second after it was asked, only the dispatcher
// is named, and since it was last heard.
func TestOnlyWhoIsSilentIsNamed(t *testing.T) {
	t.Parallel()
	for name, created := range map[string]bool{"the object is not there yet": false, "the object is there": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
			s.SetAnswerTimeout(asksFor)
			want := ""
			if created {
				s.step(time.Second)
				s.created(false)
				want = "the dispatcher of cluster c did not answer since " + s.now.UTC().Format(time.RFC3339)
			}
			s.step(time.Minute)
			named := map[string]int{}
			for range 100 {
				open := s.Questions()
				s.step(time.Second)
				for _, q := range open {
					s.seq++
					s.Gang(&event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID, Answers: q.Ask}, s.now, s.now)
				}
				if reason := s.gang().Reason; reason != nil && strings.Contains(reason.Message, "did not answer") {
					named[reason.Message]++
				}
			}
			if len(named) != 1 {
				t.Fatalf("the reasons are %v, want one that stays", named)
			}
			for message := range named {
				if !strings.Contains(message, "the dispatcher of cluster c") || !strings.Contains(message, want) {
					t.Errorf("the reason is %q, want %q", message, want)
				}
			}
		})
	}
}

// Each part is silent since it was last heard, or since something waits for it; what
// another dispatcher reports that was replaced does not count.
func TestSilences(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(600)}}, 3)
	s.CatchUp()
	if got := s.Silences(s.now); len(got) != 0 {
		t.Errorf("before the term has begun, silent are %v", got)
	}
	s.BeginDecisions(s.now)
	check := func(watcher, dispatcher time.Duration) {
		t.Helper()
		want := []Silence{{Part{"c", Watcher}, watcher}, {Part{"c", Dispatcher}, dispatcher}}
		if got := s.Silences(s.now); !slices.Equal(got, want) {
			t.Errorf("silent are %v, want %v", got, want)
		}
	}
	s.step(5 * time.Second)
	check(5*time.Second, 5*time.Second)
	report := &event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Session: 7}
	s.Status(report, s.now, s.now)
	s.step(20 * time.Second)
	check(25*time.Second, 20*time.Second)
	s.observe()
	replaced := *report
	replaced.Session = 6
	s.Status(&replaced, s.now, s.now)
	check(0, 20*time.Second)
	s.step(time.Second)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Session: 7, Gone: true, Released: true}, s.now, s.now)
	s.step(time.Hour)
	if got := s.Silences(s.now); len(got) != 1 || got[0].Name != Watcher {
		t.Errorf("without workloads silent are %v, want the watcher only", got)
	}
}
