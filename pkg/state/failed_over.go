package state

import (
	"time"

	"muster.dev/muster/pkg/message/event"
)

// FailedOver is a cluster from which gangs have failed over that may have left something there.
// It gets no gang until its dispatcher has removed that, and asks for the permission again.
type FailedOver struct {
	Cluster string `json:"cluster"`
	// Session is that of the dispatcher that asked last.
	Session int64     `json:"session"`
	At      time.Time `json:"at"`
}

// failedOver are those clusters, by name.
type failedOver map[string]FailedOver

// RememberFailedOver takes over from which clusters gangs have failed over in earlier terms. It
// comes before what was observed before the term is taken in.
func (s *State) RememberFailedOver(clusters []FailedOver) {
	for _, c := range clusters {
		s.failedOver[c.Cluster] = c
	}
}

// askedBy notes which dispatcher asks for the permission, if only to be answered later.
func (f failedOver) askedBy(p *event.PermissionAsked) {
	if c, is := f[p.Cluster]; is {
		c.Session = max(c.Session, p.Session)
		f[p.Cluster] = c
	}
}

// unclearedSince reports whether something may be left in a cluster of gangs that have failed over, and
// since when. A dispatcher that is later than the one that asked last may be of a version that
// never asks.
func (s *State) unclearedSince(cluster string) (since time.Time, is bool) {
	c, is := s.failedOver[cluster]
	return c.At, is && c.Session >= s.dispatchers[cluster]
}
