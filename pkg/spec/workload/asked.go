package workload

import "time"

// Asked are the requests of each kind that were last taken in for a workload. A request that
// NATS delivers again after a later one of its kind must not undo that.
type Asked struct {
	Hold     AskedAt `json:"hold,omitzero"` // to hold it, or to resume it
	Priority AskedAt `json:"priority,omitzero"`
	Move     AskedAt `json:"move,omitzero"` // to another queue
	Requeue  AskedAt `json:"requeue,omitzero"`
	Release  AskedAt `json:"release,omitzero"` // of its places, by force
}

// AskedAt is where a request is among the messages of its stream. It is zero for a request
// that has no such place.
type AskedAt struct {
	Sequence uint64    `json:"sequence"`
	Stored   time.Time `json:"stored"` // by NATS
}

// Follows reports whether a request counts after one that was taken in. It does not when it
// is the same message, or has both a smaller number and an earlier time. One of the two may
// mislead: numbers begin again with a stream that was lost, and a server's clock may be set
// back. With both at once a request may be ignored until the clock has passed the time of the
// former one.
func (a AskedAt) Follows(taken AskedAt) bool {
	return a == AskedAt{} || a.Sequence > taken.Sequence || a.Stored.After(taken.Stored)
}
