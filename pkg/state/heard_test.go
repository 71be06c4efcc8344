package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// submitOther submits a second gang, of one pod.
func (s *stage) submitOther() {
	s.Submit(&event.WorkloadSubmitted{Manifest: []byte(`{}`), Workload: workload.Workload{
		ID: "other", Queue: "q", Kind: "RayCluster", Name: "other",
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, s.now)
}

// A cluster whose watcher is silent gets no new gang, and the reason says since when; the
// gang that runs there stays. When it reports again the waiting gang starts.
func TestASilentClusterGetsNoNewGang(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 4)
	s.SetSilentAfter(45 * time.Second)
	s.CatchUp()
	s.BeginDecisions(s.now)
	s.created(true)
	s.step(0)
	last := s.now
	for range 46 {
		s.step(time.Second)
	}
	s.submitOther()
	s.step(0)
	other := s.live.Get("other")
	if other.Phase != workload.Queued || other.Reason == nil || !strings.Contains(other.Reason.Message, `cluster "c" has not reported since `+last.UTC().Format(time.RFC3339)) {
		t.Errorf("the other gang is %s because of %+v, want it queued because of the silence", other.Phase, other.Reason)
	}
	if s.gang().Phase != workload.Running {
		t.Errorf("the gang that runs there is %s", s.gang().Phase)
	}
	s.node("n3", nil)
	s.step(time.Second)
	if got := s.live.Get("other").Phase; got != workload.Admitted {
		t.Errorf("when the watcher reports again the gang is %s, want admitted", got)
	}
}

// A new term reads again what was reported before it, and when. A cluster that was silent
// then gets no gang, not even in the first decision.
func TestATermBeginsWithTheSilenceBeforeIt(t *testing.T) {
	t.Parallel()
	const watcher, dispatcher = true, false
	type report struct {
		of  bool
		ago time.Duration
	}
	const unknown = time.Duration(-1 << 62)
	for name, test := range map[string]struct {
		reports []report
		want    workload.Phase
	}{
		"silent for an hour":               {[]report{{watcher, time.Hour}}, workload.Queued},
		"silent for as long as is allowed": {[]report{{watcher, 45 * time.Second}}, workload.Queued},
		"reported just before":             {[]report{{watcher, 3 * time.Second}}, workload.Admitted},
		"reports while the term begins":    {[]report{{watcher, time.Hour}, {watcher, 0}}, workload.Admitted},
		"read in another order":            {[]report{{watcher, 0}, {watcher, time.Hour}}, workload.Admitted},
		"only its dispatcher reports":      {[]report{{watcher, time.Hour}, {dispatcher, 0}}, workload.Queued},
		"NATS is an hour ahead":            {[]report{{watcher, -time.Hour}}, workload.Admitted},
		"it is not known when it reported": {[]report{{watcher, unknown}}, workload.Queued},
		"nothing of it is read":            {nil, workload.Queued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 4)
			s.replaceLeader(func() {
				s.SetSilentAfter(45 * time.Second)
				s.submitOther()
				for _, r := range test.reports {
					stored := s.now.Add(-r.ago)
					if r.ago == unknown {
						stored = time.Time{}
					}
					var payload event.Payload = &event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 1, Seq: 1}}
					if r.of == dispatcher {
						payload = &event.GangStatus{Cluster: "c"}
					}
					s.HeardBefore(payload, stored, s.now)
				}
			})
			other := s.live.Get("other")
			if other.Phase != test.want {
				t.Errorf("in the first decision the gang is %s because of %+v, want %s", other.Phase, other.Reason, test.want)
			}
			if test.want == workload.Admitted {
				return
			}
			last := s.now // the beginning of the term
			for _, r := range test.reports {
				if r.of == watcher && r.ago > 0 {
					last = s.now.Add(-r.ago)
				}
			}
			if since := "has not reported since " + last.UTC().Format(time.RFC3339); other.Reason == nil || !strings.Contains(other.Reason.Message, since) {
				t.Errorf("the reason is %+v, want that the cluster %s", other.Reason, since)
			}
			s.node("n3", nil)
			s.step(time.Second)
			if got := s.live.Get("other").Phase; got != workload.Admitted {
				t.Errorf("with the first report of the watcher the gang is %s, want admitted", got)
			}
		})
	}
}

// While NATS is away for an hour every cluster is silent. A term that begins after that ends
// nothing, and starts gangs again with the first report.
func TestATermAfterAnHourWithoutNATS(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 4)
	s.created(true)
	s.now = s.now.Add(time.Hour)
	s.replaceLeader(func() {
		s.SetSilentAfter(45 * time.Second)
		s.SetAnswerTimeout(asksFor)
		s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true}, s.now.Add(-time.Hour), s.now)
		s.observe()
		s.HeardBefore(&event.GangObserved{Cluster: "c", Version: event.Version{Session: 1}}, s.now.Add(-time.Hour), s.now)
		s.submitOther()
	})
	for range 10 {
		s.step(time.Minute)
		s.is(workload.Running, "")
	}
	if got := s.live.Get("other").Phase; got != workload.Queued {
		t.Errorf("while the cluster is silent the other gang is %s", got)
	}
	s.node("n3", nil)
	s.step(time.Second)
	s.is(workload.Running, "")
	if got := s.live.Get("other").Phase; got != workload.Admitted {
		t.Errorf("with the first report the other gang is %s, want admitted", got)
	}
}

// Once a term decides, a report counts at the time at which it arrives.
func TestTheTimeOfNATSCountsOnlyAtTheBegin(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 1)
	s.replaceLeader(func() { s.SetSilentAfter(45 * time.Second) })
	began := s.now
	s.step(20 * time.Second)
	s.HeardBefore(&event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 1}}, s.now, s.now)
	if got := s.heardSince(Part{"c", Watcher}); !got.Equal(began) {
		t.Errorf("the watcher was heard at %s, want the beginning of the term, %s", got, began)
	}
}

// After a reconnection a term reads old reports again, which are no sign of life.
func TestAReportThatIsReadAgainIsNoSignOfLife(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 1)
	s.replaceLeader(func() { s.SetSilentAfter(45 * time.Second) })
	report := &event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 1, Seq: 9}, Nodes: []string{"n0"}}
	take := func(stored time.Time) {
		s.HeardBefore(report, stored, s.now)
		s.Synced(report, s.now)
	}
	take(time.Time{})
	heard := s.now
	s.step(time.Minute)
	take(heard)
	s.step(time.Second)
	if since := s.admission.Silent("c"); !since.Equal(heard) {
		t.Errorf("when the report is read again the cluster is silent since %s, want %s", since, heard)
	}
	take(time.Time{})
	s.step(time.Second)
	if since := s.admission.Silent("c"); !since.IsZero() {
		t.Errorf("after a report the cluster is silent since %s", since)
	}
}

// What a watcher reported that another one has replaced is no sign of life.
func TestAReplacedWatcherWasNotHeard(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 1)
	s.replaceLeader(func() {
		s.SetSilentAfter(45 * time.Second)
		s.Synced(&event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 7}, Nodes: []string{"n0"}}, s.now)
		s.HeardBefore(&event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 7}}, s.now.Add(-time.Hour), s.now)
		s.HeardBefore(&event.GangObserved{Cluster: "c", Version: event.Version{Session: 6}}, s.now, s.now)
	})
	if since := s.admission.Silent("c"); !since.Equal(s.now.Add(-time.Hour)) {
		t.Errorf("the cluster is silent since %s, want for an hour", since)
	}
}
