// Package session keeps who is logged in to the console: for each browser the token with which
// the console asks the HTTP API, in memory only.
//
// It does not check tokens: the HTTP API does, before a session is opened.
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

// Limits of sessions.
const (
	// Idle ends a session that is not used, Longest any session.
	Idle    = 8 * time.Hour
	Longest = 24 * time.Hour
	// PerCaller and Most bound the sessions of one caller and of all. The oldest of a caller
	// makes room for its next one; one more than Most is refused.
	PerCaller = 16
	Most      = 4096
)

// Session is a caller that is logged in. It does not change.
type Session struct {
	// Caller is its name in the HTTP API, and Operator its right when it logged in.
	Caller   string
	Operator bool
	// Token is the caller's own, with which the console asks.
	Token string
	// Form is what each form of the session carries, so that no other site can send it.
	Form string
}

// Sends reports whether a form of the session carries this value.
func (s *Session) Sends(form string) bool {
	return subtle.ConstantTimeCompare([]byte(s.Form), []byte(form)) == 1
}

// Store has the sessions. Its methods may be called concurrently.
type Store struct {
	now func() time.Time

	mu   sync.Mutex
	open map[[sha256.Size]byte]*entry // by the hash of the id, so that a lookup's duration reveals no id
}

type entry struct {
	Session
	opened, used time.Time
}

// NewStore returns a store without sessions; now is the clock.
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, open: map[[sha256.Size]byte]*entry{}}
}

// Open makes a session and returns its id, which is for the caller's browser alone. It reports
// false if there are too many.
func (s *Store) Open(caller string, operator bool, token string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeEnded()
	of, oldest := 0, [sha256.Size]byte{}
	for key, e := range s.open {
		if e.Caller != caller {
			continue
		}
		if of++; of == 1 || e.opened.Before(s.open[oldest].opened) {
			oldest = key
		}
	}
	if of >= PerCaller {
		delete(s.open, oldest)
	}
	if len(s.open) >= Most {
		return "", false
	}
	id = rand.Text()
	now := s.now()
	s.open[sha256.Sum256([]byte(id))] = &entry{
		Session: Session{Caller: caller, Operator: operator, Token: token, Form: rand.Text()}, opened: now, used: now,
	}
	return id, true
}

// Get returns the session with the id, and counts it as used now; nil if there is none.
func (s *Store) Get(id string) *Session { return s.get(id, true) }

// Peek is Get without counting a use: a page that is left open uses nothing.
func (s *Store) Peek(id string) *Session { return s.get(id, false) }

func (s *Store) get(id string, use bool) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(id))
	e := s.open[key]
	if e == nil {
		return nil
	}
	if s.ended(e) {
		delete(s.open, key)
		return nil
	}
	if use {
		e.used = s.now()
	}
	return &e.Session
}

// Close ends the session with the id, if there is one.
func (s *Store) Close(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(id)))
}

func (s *Store) removeEnded() {
	for key, e := range s.open {
		if s.ended(e) {
			delete(s.open, key)
		}
	}
}

func (s *Store) ended(e *entry) bool {
	now := s.now()
	return now.Sub(e.used) > Idle || now.Sub(e.opened) > Longest
}
