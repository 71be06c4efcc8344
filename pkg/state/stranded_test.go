package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// events returns the kinds of the reasons in the events of the gang since the last call; "" for
// an event without a reason. What a slow start has is left out.
func (s *stage) events() (kinds []workload.ReasonKind) {
	for _, m := range s.Flush().Messages {
		switch c, is := m.Payload.(*event.WorkloadChanged); {
		case !is || c.ID != gangID:
		case c.Reason == nil:
			kinds = append(kinds, "")
		case c.Reason.Kind != workload.ReasonStarting:
			kinds = append(kinds, c.Reason.Kind)
		}
	}
	return kinds
}

// told fails unless the events of the gang have reasons of exactly these kinds.
func (s *stage) told(when string, want ...workload.ReasonKind) {
	s.Helper()
	if got := s.events(); !slices.Equal(got, want) {
		s.Errorf("%s the events of the gang have the reasons %q, want %q", when, got, want)
	}
}

// newSilent has a gang whose cluster was heard just now; run says whether it runs.
func newSilent(t *testing.T, run bool) *stage {
	t.Helper()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(36000)}}, 3)
	s.SetSilentAfter(silentFor)
	s.begun = s.now
	if run {
		s.created(true)
	}
	s.step(0)
	s.Flush()
	return s
}

// The owner of a gang gets one event when its cluster becomes silent, and one when that is over.
func TestAnOwnerLearnsOfASilenceOnce(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]bool{"of a gang that runs": true, "of a gang that was admitted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSilent(t, run)
			phase, since := s.gang().Phase, s.now
			for range 2 {
				s.step(silentFor - time.Second)
				s.told("before the silence is noted")
				s.step(time.Second)
				s.told("when the silence is noted", workload.ReasonClusterSilent)
				s.is(phase, workload.ReasonClusterSilent)
				if want := `cluster "c" has not reported since ` + since.UTC().Format(time.RFC3339); !strings.Contains(s.gang().Reason.Message, want) {
					t.Errorf("the reason is %q, want it to have %q", s.gang().Reason.Message, want)
				}
				for range 60 {
					s.step(time.Minute)
				}
				s.told("while the silence lasts")
				s.node("n0", nil)
				since = s.now
				s.step(0)
				s.told("when the cluster reports again", "")
			}
		})
	}
}

// A gang that fails over has an event for each step: the silence, the end of the permission, and
// the release of its places.
func TestAnOwnerLearnsOfAFailover(t *testing.T) {
	t.Parallel()
	const by = lasts + lasts/driftOf + stopMargin
	s := newPermitted(t, workload.FailOver, true)
	s.step(0)
	s.Flush()
	s.step(silentFor)
	s.told("when the silence is noted", workload.ReasonClusterSilent)
	s.step(lasts - silentFor - time.Second)
	s.told("a second before the permission ends")
	s.step(time.Second)
	s.told("when the permission has ended", workload.ReasonPermissionEnded)
	s.step(by - lasts - time.Second)
	s.told("a second before the places are released")
	s.step(time.Second)
	if got := s.events(); len(got) == 0 || got[0] != workload.ReasonClusterLost {
		t.Errorf("when the places are released the events have the reasons %q, want ClusterLost first", got)
	}
}

// A gang that needs no permission hears nothing of its end.
func TestAGangThatStaysHearsOfTheSilenceAlone(t *testing.T) {
	t.Parallel()
	s := newPermitted(t, workload.StayInLostCluster, false)
	s.step(silentFor)
	s.told("when the silence is noted", workload.ReasonClusterSilent)
	s.step(2 * lasts)
	s.told("long after the end of the permission")
}

// A new leader repeats no event of a silence that goes on, and takes the reason away of one that
// has ended.
func TestANewLeaderRepeatsNoEventOfASilence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		heard time.Duration // before the new term; negative for unknown
		want  []workload.ReasonKind
	}{
		"it goes on":                     {heard: time.Hour},
		"NATS has no report any more":    {heard: -1},
		"it has ended before the leader": {heard: time.Second, want: []workload.ReasonKind{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSilent(t, true)
			s.step(time.Hour)
			s.told("when the silence is noted", workload.ReasonClusterSilent)
			s.replaceLeader(func() {
				s.SetSilentAfter(silentFor)
				if test.heard >= 0 {
					s.HeardBefore(&event.CapacitySynced{Cluster: "c", Version: event.Version{Session: 1}}, s.now.Add(-test.heard), s.now)
				}
				s.created(false)
			}, s.observe)
			s.told("in the first decision", test.want...)
			if test.want == nil {
				s.step(time.Hour)
				s.told("later in the term")
			}
		})
	}
}

// One Tick tells the owners of a bounded number of gangs, and the next ones the rest.
func TestOwnersLearnOfASilenceSomeAtATime(t *testing.T) {
	t.Parallel()
	const gangs = 2*releasedAtOnce + 10
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(36000)}}, gangs+3)
	s.SetSilentAfter(silentFor)
	s.begun = s.now
	for i := range gangs {
		s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: workload.ID(fmt.Sprintf("g%03d", i)), Queue: "q", Kind: "RayCluster", Name: fmt.Sprintf("g%d", i),
			PodSets: []workload.PodSet{podSet("headgroup", workload.RoleHead, 1)},
		}}, nil, s.now)
	}
	s.step(0)
	s.Flush()
	s.step(silentFor)
	for _, want := range []int{releasedAtOnce, releasedAtOnce, gangs + 1 - 2*releasedAtOnce, 0} {
		told := 0
		for _, m := range s.Flush().Messages {
			if c, is := m.Payload.(*event.WorkloadChanged); is && c.Reason != nil && c.Reason.Kind == workload.ReasonClusterSilent {
				told++
			}
		}
		if told != want {
			t.Fatalf("a Tick has %d events, want %d", told, want)
		}
		s.step(time.Second)
	}
}
