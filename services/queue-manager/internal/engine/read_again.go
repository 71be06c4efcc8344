package engine

import (
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
)

// readTo is how far a term has read each stream that it follows, by the beginning of its
// subjects. After a reconnection to NATS a stream is read from its beginning again, and a report
// that comes again shows nothing about now.
type readTo map[string]readPlace

type readPlace struct {
	sequence uint64
	stored   time.Time
}

// again reports whether a message was read before. A stream that NATS has lost may have
// the same sequences again, with later times; a clock of NATS that is set back leaves the sequences.
func (r *readTo) again(d bus.Delivery) bool {
	if d.Settles() || d.Sequence == 0 {
		return false
	}
	name := streamPart(d.Subject)
	last := (*r)[name]
	if d.Sequence <= last.sequence && !d.Stored.After(last.stored) {
		return true
	}
	if *r == nil {
		*r = readTo{}
	}
	(*r)[name] = readPlace{d.Sequence, d.Stored}
	return false
}

// streamPart is the beginning of a subject that all subjects of its stream have.
func streamPart(subject string) string {
	product, rest, _ := strings.Cut(subject, ".")
	kind, _, _ := strings.Cut(rest, ".")
	return product + "." + kind
}
