package session_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/services/console/internal/session"
)

// clock is a time that the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func open(t *testing.T, s *session.Store, caller string) string {
	t.Helper()
	id, ok := s.Open(caller, false, "token of "+caller)
	if !ok {
		t.Fatalf("no session for %s", caller)
	}
	return id
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(c *clock, s *session.Store, id string)
		ends bool
	}{
		"not while it is used": {func(c *clock, s *session.Store, id string) {
			for range 2 {
				c.at = c.at.Add(session.Idle)
				s.Get(id)
			}
		}, false},
		"when it is idle": {func(c *clock, _ *session.Store, _ string) { c.at = c.at.Add(session.Idle + time.Second) }, true},
		"when it is old": {func(c *clock, s *session.Store, id string) {
			for range 5 {
				c.at = c.at.Add(session.Idle)
				s.Get(id)
			}
		}, true},
		"when its pages are only left open": {func(c *clock, s *session.Store, id string) {
			c.at = c.at.Add(session.Idle)
			s.Peek(id)
			c.at = c.at.Add(time.Second)
		}, true},
		"when it is closed": {func(_ *clock, s *session.Store, id string) { s.Close(id) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &clock{time.Unix(1_000_000, 0)}
			s := session.NewStore(c.now)
			id := open(t, s, "alice")
			if got := s.Get(id); got == nil || got.Token != "token of alice" || got.Form == "" || got.Form == id {
				t.Fatalf("the session is %+v", got)
			}
			test.do(c, s, id)
			if ended := s.Get(id) == nil; ended != test.ends {
				t.Errorf("it has ended: %t, want %t", ended, test.ends)
			}
		})
	}
}

// TestACallerHasAFewSessions: one more ends the oldest of the same caller, and of no other.
func TestACallerHasAFewSessions(t *testing.T) {
	t.Parallel()
	c := &clock{time.Unix(1_000_000, 0)}
	s := session.NewStore(c.now)
	bob := open(t, s, "bob")
	var ids []string
	for range session.PerCaller + 1 {
		c.at = c.at.Add(time.Second)
		ids = append(ids, open(t, s, "alice"))
	}
	if s.Get(ids[0]) != nil || s.Get(ids[1]) == nil || s.Get(ids[len(ids)-1]) == nil || s.Get(bob) == nil {
		t.Error("want the oldest session of alice to end, and no other")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	c := &clock{time.Unix(1_000_000, 0)}
	s := session.NewStore(c.now)
	for i := range session.Most {
		open(t, s, fmt.Sprint(i))
	}
	if _, ok := s.Open("one more", false, ""); ok {
		t.Error("there is one session more than the limit")
	}
	c.at = c.at.Add(session.Idle + time.Second)
	open(t, s, "later")
}

func TestAFormIsOfItsSession(t *testing.T) {
	t.Parallel()
	s := session.NewStore(time.Now)
	mine, other := s.Get(open(t, s, "alice")), s.Get(open(t, s, "alice"))
	if !mine.Sends(mine.Form) || mine.Sends(other.Form) || mine.Sends("") {
		t.Error("want a session to take its own forms and no others")
	}
}
