package bus

import "hash/maphash"

// duplicatesKept bounds the messages that are remembered.
const duplicatesKept = 10_000

// Duplicates recognises the messages of a subscription that were delivered before: after a
// reconnection a subscription starts over, and what a stream has lost is published again
// under the same ids. The zero value has seen nothing. It is not safe for concurrent use.
type Duplicates struct {
	last Delivery
	seed maphash.Seed
	seen map[uint64]bool // by the hash of the message id, of the last ones: a server has many subscriptions
	ring []uint64
	next int
}

// Seen reports whether the message was there before, and notes it. Of messages that are
// published again it knows the last 10,000.
func (r *Duplicates) Seen(d Delivery) bool {
	if d.Sequence <= r.last.Sequence && !d.Stored.After(r.last.Stored) {
		return true // a new stream may have numbers that were there, but its times go on
	}
	r.last = Delivery{Sequence: d.Sequence, Stored: d.Stored}
	if d.MessageID() == "" {
		return false
	}
	if r.seen == nil {
		r.seed, r.seen = maphash.MakeSeed(), map[uint64]bool{}
	}
	id := maphash.String(r.seed, d.MessageID())
	if r.seen[id] {
		return true
	}
	if len(r.ring) < duplicatesKept {
		r.ring = append(r.ring, id)
	} else {
		delete(r.seen, r.ring[r.next])
		r.ring[r.next] = id
		r.next = (r.next + 1) % duplicatesKept
	}
	r.seen[id] = true
	return false
}
