package permission

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
)

// How long requests may take: to read what is stored, and to replace it, which
// each decision waits for; to list what needs it; and for one object that is deleted.
const (
	readWithin   = 5 * time.Second
	writeWithin  = 5 * time.Second
	listWithin   = 60 * time.Second
	deleteWithin = 10 * time.Second
	// deletesAtOnce is how many objects are deleted at the same time, and stopWithin how long
	// pods or objects are gone on with before what is left is listed again.
	deletesAtOnce = 64
	stopWithin    = 30 * time.Second
	// namedMost bounds the objects and the errors that are named.
	namedMost = 5
)

// seenLate is how long a process may not have looked to have seen what is stored from its first
// second. It is as long as a request may take.
const seenLate = 5 * time.Second

// read reads what is stored.
func (k *Keeper) read(ctx context.Context) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return k.cluster.Permission(ctx)
}

// writtenText stands for the text of a record that this process has written and not read yet.
const writtenText = "written"

// write replaces what is stored.
func (k *Keeper) write(ctx context.Context, instead string, r Record) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := k.cluster.SetPermission(ctx, instead, r); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.last.Text = r, writtenText
	return nil
}

// judge reads what is stored, and whether it has ended.
func (k *Keeper) judge(ctx context.Context) (Record, bool, error) {
	k.turn.Lock()
	defer k.turn.Unlock()
	before := k.clock.Elapsed()
	stored, err := k.read(ctx)
	if err == nil {
		stored, err = k.remembered(ctx, stored)
	}
	if err != nil {
		return stored, false, err
	}
	return stored, k.over(stored, before), nil
}

// over reports whether what was read at the given time has ended: by how long this process has
// seen it, and, when it was there before this process looked, also by the wall clock. What is
// not known has ended.
func (k *Keeper) over(stored Record, before time.Duration) (is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() {
		if k.looked, k.hasLooked = before, true; is {
			k.ends = 0 // what is created now would be deleted
		}
	}()
	k.stored = stored.Text != ""
	wall, now := k.clock.Wall(), k.clock.Elapsed()
	if !stored.Until.Equal(k.seen.until) || k.seen.until.IsZero() {
		k.see(k.sight(stored, now))
	}
	switch {
	case stored.Stopping || stored.Until.IsZero() || now-k.seen.at >= min(time.Duration(stored.For), event.PermissionMost):
		return true
	case k.seen.stored || wall.Before(stored.Until):
		return false
	}
	if !k.seen.logged {
		k.seen.logged = true
		k.byWall++
	}
	return true
}

// LookEvery is how often Look is to be called: a permission that another process stores is
// obeyed from then on.
const LookEvery = time.Second

// How long it takes until what needs the permission is listed again when nothing was found: where
// it has ended, and where there has been none since the process began.
const (
	listLess   = 5 * time.Second
	listSeldom = time.Hour
	// listFailed is how long it takes where there has been none, and listing fails.
	listFailed = time.Minute
	// missingLately is how long something may be on its way of a permission that is not known
	// any more, because its object was missing.
	missingLately = time.Minute
)

// listed is what was stored when what needs the permission was listed, and when that is to be
// done again. clean: nothing was found whose deletion had not begun.
type listed struct {
	done, clean bool
	text        string
	again       time.Duration
}

// Look stops what needs the permission if that has ended. It bounds its requests, and is not to
// be called twice at the same time.
func (k *Keeper) Look(ctx context.Context) error {
	stored, over, err := k.judge(ctx)
	if err != nil || !over || k.listedLately(stored) {
		return err
	}
	left, err := k.stop(ctx, stored)
	k.noteListed(stored, left, err)
	return err
}

// listedLately reports whether what needs the permission need not be listed yet.
func (k *Keeper) listedLately(stored Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.listed.done && stored.Text == k.listed.text && k.clock.Elapsed() < k.listed.again
}

// clean reports whether nothing is left of what may not be kept, as Look has found.
func (k *Keeper) clean(stored Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.listed.clean && stored.Text == k.listed.text && k.clock.Elapsed() < k.listed.again+seenLate
}

func (k *Keeper) noteListed(stored Record, left int, failed error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clean, after := left == 0 && failed == nil, time.Duration(0)
	never := stored.Text == "" && !(k.wasMissing && k.clock.Elapsed()-k.missing < missingLately)
	switch {
	case never && clean: // as in most clusters
		after = listSeldom
	case never && left == 0:
		after = listFailed
	case clean:
		after = listLess
	}
	k.listed = listed{true, clean, stored.Text, k.clock.Elapsed() + after}
}

// stop deletes what needs the permission, and returns how many objects it has found whose
// deletion had not begun. It notes them first, in place of the permission that has ended:
// another process that has renewed it meanwhile is noticed by that, and nothing is deleted.
// What ends slowly or not at all does not count: its deletion has begun, and it is for those who
// see to it, such as the reaper of the dispatcher.
func (k *Keeper) stop(ctx context.Context, stored Record) (left int, err error) {
	listing, cancel := context.WithTimeout(ctx, listWithin)
	all, failed := k.cluster.Permitted(listing)
	cancel()
	k.noteEnding(all)
	all = slices.DeleteFunc(all, func(h Held) bool { return h.Deleting && !h.Slow })
	if len(all) == 0 {
		return 0, failed
	}
	for _, h := range all {
		if !h.Deleting {
			left++
		}
	}
	// What is listed here may need a permission that was stored after the record was read.
	if stored.Missing {
		if now, err := k.read(ctx); err != nil || !now.Missing {
			return left, errors.Join(err, ErrChanged)
		}
		k.noteLater(all)
	} else if err := k.write(ctx, stored.Text, noted(stored, all)); err != nil {
		return left, err
	}
	return left, errors.Join(failed, k.delete(ctx, all))
}

func (k *Keeper) noteStopped() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stops++
}

// noteEnding notes what is being deleted.
func (k *Keeper) noteEnding(all []Held) {
	var names []string
	for _, h := range all {
		if h.Deleting && len(names) < namedMost {
			names = append(names, h.Kind+" "+h.Namespace+"/"+h.Name)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ending = names
}
