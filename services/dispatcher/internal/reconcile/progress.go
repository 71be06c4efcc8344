package reconcile

import (
	"maps"
	"time"

	"muster.dev/muster/services/dispatcher/internal/gang"
)

// progress is what the worker of a workload remembers from pass to pass. Each part names
// the attempt that it is of, but for sent, whose UIDs do.
type progress struct {
	creation, removal began
	rollback          rollback
	sent              map[string]string // hostname by UID of pods that the cache still shows gated
	unplanned         unplanned
	beginning         beginning
	carried           int // the attempt for which objects of other clusters were copied
}

// began is when something began for an attempt. After a restart it counts from zero
// again, so what depends on it happens later, never earlier.
type began struct {
	attempt int
	at      time.Time
}

// since notes that it has begun, if it has not, and returns when.
func (b *began) since(attempt int, now time.Time) time.Time {
	if b.attempt != attempt {
		*b = began{attempt, now}
	}
	return b.at
}

// rollback is a creation that is being taken back, since when and why. It is not
// stored: the next dispatcher creates again, and is refused again. What was created
// is in the status.
type rollback struct {
	attempt int
	cause   string
	since   time.Time
	// mendable means that an administrator can mend the cause.
	mendable bool
}

// unplanned is when pods were seen and deleted that an attempt should not have.
type unplanned struct {
	attempt       int
	seen, deleted time.Time
}

// creatingSince is since when the attempt is being created.
func (t *tracked) creatingSince(attempt int, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.creation.since(attempt, now)
}

// removingSince is since when the attempt is being removed.
func (t *tracked) removingSince(attempt int, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removal.since(attempt, now)
}

func (t *tracked) setRollback(back rollback) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollback = back
}

// rollingBack returns the roll-back of the attempt, and whether there is one.
func (t *tracked) rollingBack(attempt int) (back rollback, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rollback, t.rollback.cause != "" && t.rollback.attempt == attempt
}

// beginningOf returns how the gang of the attempt begins.
func (t *tracked) beginningOf(attempt int) beginning {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beginning.attempt != attempt {
		return beginning{attempt: attempt}
	}
	return t.beginning
}

func (t *tracked) setBeginning(b beginning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.beginning = b
}

// noteSent keeps where a pod was sent.
func (t *tracked) noteSent(pin gang.Pin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sent == nil {
		t.sent = map[string]string{}
	}
	t.sent[pin.Pod.UID] = pin.Hostname
}

// sentOf returns where pods were sent that the cache still shows gated, and forgets
// the others. The cache lags behind the API server's answer to a pin; without this
// the next pod would be sent to the same place.
func (t *tracked) sentOf(pods []gang.Pod) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.sent) == 0 {
		return nil
	}
	gated := make(map[string]bool, len(pods))
	for _, p := range pods {
		gated[p.UID] = p.Gated
	}
	maps.DeleteFunc(t.sent, func(uid, _ string) bool { return !gated[uid] })
	return maps.Clone(t.sent)
}

// noteUnplanned notes whether unplanned pods are there now. It returns when some were
// there last, and whether they are to be deleted now.
func (t *tracked) noteUnplanned(attempt int, are bool, now time.Time) (seen time.Time, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unplanned.attempt != attempt {
		t.unplanned = unplanned{attempt: attempt}
	}
	if !are {
		return t.unplanned.seen, false
	}
	t.unplanned.seen = now
	if due = now.Sub(t.unplanned.deleted) >= unplannedEvery; due {
		t.unplanned.deleted = now
	}
	return now, due
}
