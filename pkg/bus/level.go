package bus

import (
	"sync"
	"time"
)

// level is what a subject had when it was first seen above its part in a stream that was
// half full, or at its lowest since.
type level struct {
	messages uint64
	settled  int64 // of this subject
	at       time.Time
}

// reading is what the reader of a stream settles. Its methods may be called concurrently.
type reading struct {
	mu        sync.Mutex
	last      time.Time        // of any subject
	bySubject map[string]int64 // how many
}

func (r *reading) settle(subject string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bySubject == nil {
		r.bySubject = map[string]int64{}
	}
	r.last = now
	r.bySubject[subject]++
}

// of returns how many messages of a subject were settled, and when any was last.
func (r *reading) of(subject string) (settled int64, last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bySubject[subject], r.last
}

// forget bounds the memory by the subjects that have a reader.
func (r *reading) forget(subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bySubject, subject)
}

const (
	// floodOfPart is by how much of its part a subject has to grow to be a flood.
	floodOfPart = 8
	// heldAfter is when a subject is a flood that is read and does not become smaller:
	// when a stream is full it cannot grow.
	heldAfter = time.Second
	// readWithin is how long ago the reader may have settled its last message. One
	// message may take ten seconds. A subject that does not become smaller for so long,
	// while others are read, is a flood, too.
	readWithin = 15 * time.Second
)

// flooded reports whether messages of the subject are to be dropped, when a message has
// the mean size. While nothing is settled, nothing is known: the reader, or the service
// it writes to, may be away.
func (v level) flooded(messages uint64, settled int64, last, now time.Time, mean, part uint64) bool {
	if now.Sub(last) > readWithin || messages < v.messages {
		return false
	}
	passed := now.Sub(v.at)
	return mean*(messages-v.messages) > part/floodOfPart || passed >= heldAfter && settled > v.settled || passed > readWithin
}
