package quota

import "cmp"

func (v *validation) backfill(path string, q *ClusterQueue) {
	b := q.Backfill
	if b == nil {
		return
	}
	switch {
	case q.Strategy == StrictFIFO:
		v.faults.Add(path+".backfill", "is for queueingStrategy %s or %s, and that of this queue is %q", Backfill, BestEffortFIFO, q.Strategy)
	case q.Strategy != Backfill && b.Order != "":
		v.faults.Add(path+".backfill.order", "is for queueingStrategy %s, and that of this queue is %q", Backfill, cmp.Or(q.Strategy, BestEffortFIFO))
	}
	v.oneOf(path+".backfill.order", b.Order, Submission, ShortestBackfill, ShortestFirst)
	v.notNegative(path+".backfill.patienceSeconds", b.PatienceSeconds)
	if b.PatienceFactor < 0 || b.PatienceFactor > maxPatienceFactor {
		v.faults.Add(path+".backfill.patienceFactor", "%d: want 0 to %d", b.PatienceFactor, maxPatienceFactor)
	}
	if b.Depth < 0 || b.Depth > MaxDepth {
		v.faults.Add(path+".backfill.depth", "%d: want 1 to %d", b.Depth, MaxDepth)
	}
	if b.Depth > 1 && q.Strategy != Backfill {
		v.faults.Add(path+".backfill.depth", "is for queueingStrategy %s, and that of this queue is %q", Backfill, cmp.Or(q.Strategy, BestEffortFIFO))
	}
}

// maxPatienceFactor keeps the end of a patience a time that can be computed.
const maxPatienceFactor = 1000

// MaxDepth bounds the reservations of a queue: each costs a search for places whenever a gang
// ends.
const MaxDepth = 1000

// BackfillPolicy settles who is the head of a queue with strategy Backfill, and
// who passes it first.
type BackfillPolicy struct {
	// Order is Submission (the default), ShortestBackfill or ShortestFirst.
	Order string `json:"order,omitempty"`
	// PatienceSeconds is how long a gang waits before nodes are drained for it
	// when the run times that matter have not been declared, and, with
	// ShortestFirst, before it comes ahead of all that have waited for less. Zero
	// is one hour; in a BestEffortFIFO queue, where the head has no reservation before,
	// one day.
	PatienceSeconds int64 `json:"patienceSeconds,omitempty"`
	// PatienceFactor lengthens the patience of each gang by this multiple of its declared run
	// time: gangs of days may be passed for longer than gangs of minutes.
	PatienceFactor int64 `json:"patienceFactor,omitempty"`
	// Depth is how many gangs, from the head, have reservations in time: 1 (the default)
	// is EASY backfill, and more is conservative backfill down to that depth.
	Depth int `json:"depth,omitempty"`
}

// Orders of a Backfill queue.
const (
	Submission       = "Submission"       // head and those who pass by submission
	ShortestBackfill = "ShortestBackfill" // head by submission, those who pass by declared run time
	ShortestFirst    = "ShortestFirst"    // all by declared run time, until their patience is over
)
