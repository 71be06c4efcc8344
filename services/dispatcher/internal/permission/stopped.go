package permission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// What was stopped is noted in the API server, because an attempt whose objects are gone counts
// as deleted by a user otherwise. The object that keeps the notes may be deleted: then this
// process stops all the same when the last permission that it has read ends, and notes what it
// has stopped once the object is there again.

// errMissing means that the notes are missing.
var errMissing = errors.New("the object is missing that notes what was stopped without the permission of the cluster")

// noted is what is stored while these are stopped. What was being deleted before is not noted:
// that was not for the permission.
func noted(stored Record, all []Held) Record {
	var stopped []string
	for _, h := range all {
		if h.Workload != "" && !h.Deleting {
			stopped = append(stopped, attemptOf(h.Workload, h.Attempt))
		}
	}
	stored.Stopping = true
	return withStopped(stored, stopped)
}

// withStopped adds attempts to those that are noted as stopped.
func withStopped(r Record, stopped []string) Record {
	r.Stopped = slices.Clone(r.Stopped)
	known := map[string]bool{}
	for _, one := range r.Stopped {
		known[one] = true
	}
	for _, one := range stopped {
		switch {
		case known[one]:
		case len(r.Stopped) >= stoppedMost:
			r.Overflowed = true
		default:
			known[one] = true
			r.Stopped = append(r.Stopped, one)
		}
	}
	return r
}

// remembered returns what counts when this was read: what this process read last, where the
// object is missing. Where it is there again this notes what was stopped meanwhile, and what
// was noted before.
func (k *Keeper) remembered(ctx context.Context, read Record) (Record, error) {
	if read.Missing {
		k.noteMissing()
	}
	k.mu.Lock()
	last, unnoted := k.last, k.unnoted
	k.mu.Unlock()
	if read.Missing {
		last.Missing = true
		return last, nil
	}
	next, isNew := read, read.Text == "" && last.Text != ""
	if isNew { // what is on its way without the permission is looked for until there is one again
		next.Stopping, next.Overflowed = true, last.Overflowed
		next = withStopped(next, last.Stopped)
	}
	next = withStopped(next, unnoted.Stopped)
	next.Overflowed = next.Overflowed || unnoted.Overflowed
	if isNew || len(next.Stopped) > len(read.Stopped) || next.Overflowed != read.Overflowed {
		if err := k.write(ctx, read.Text, next); err != nil {
			return read, err
		}
		var err error
		if read, err = k.read(ctx); err != nil || read.Missing {
			return read, errors.Join(err, errMissing)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = read
	if len(k.unnoted.Stopped) == len(unnoted.Stopped) { // else more was stopped meanwhile
		k.unnoted = Record{}
	}
	return read, nil
}

// noteMissing keeps what was noted: another process may make the object again without it.
func (k *Keeper) noteMissing() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.missing = k.clock.Elapsed()
	k.wasMissing = true
	k.unnoted = withStopped(k.unnoted, k.last.Stopped)
	k.unnoted.Overflowed = k.unnoted.Overflowed || k.last.Overflowed
}

// noteLater keeps what is stopped while the object is missing that would have it.
func (k *Keeper) noteLater(all []Held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unnoted = noted(k.unnoted, all)
	k.last.Stopping = true
}

// WasStopped reports whether the objects of an attempt were deleted because the permission
// had ended. When more were than are noted, any of them may have been.
func (k *Keeper) WasStopped(ctx context.Context, id workload.ID, attempt int) (bool, error) {
	stored, err := k.cluster.Permission(ctx)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	records := []Record{stored, k.unnoted}
	if stored.Text == "" {
		records = append(records, k.last)
	}
	k.mu.Unlock()
	for _, r := range records {
		if r.Overflowed || slices.Contains(r.Stopped, attemptOf(id, attempt)) {
			return true, nil
		}
	}
	if stored.Missing {
		return false, errMissing
	}
	return false, nil
}

func attemptOf(id workload.ID, attempt int) string { return fmt.Sprintf("%s/%d", id, attempt) }
