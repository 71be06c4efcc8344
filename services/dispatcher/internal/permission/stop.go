package permission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// over reports whether what is stored has ended: by the wall clock; by how long this process
// has seen it; or, where this process has stored it, by when it asked. What is not known has
// ended.
func (k *Keeper) over(stored Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Elapsed()
	if !stored.Until.Equal(k.seen.until) {
		k.seen = seen{stored.Until, now}
	}
	return stored.Stopping || stored.Until.IsZero() || !k.clock.Wall().Before(stored.Until) ||
		now-k.seen.at >= time.Duration(stored.For)
}

// LookEvery is how often Look is to be called: a permission that another process stores is
// obeyed from then on.
const LookEvery = time.Second

// How long it takes until what needs the permission is listed again when nothing was found: where
// it has ended, and where there has been none.
const (
	listLess   = 5 * time.Second
	listSeldom = time.Minute
)

// Look stops what needs the permission if that has ended.
func (k *Keeper) Look(ctx context.Context) error {
	stored, err := k.cluster.Permission(ctx)
	if err != nil || !k.over(stored) || k.listedLately(stored) {
		return err
	}
	left, err := k.stop(ctx, stored)
	if err == nil && left == 0 {
		k.noteListed(stored)
	}
	return err
}

// listedLately reports whether nothing was found a while ago, and the same is stored.
func (k *Keeper) listedLately(stored Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return stored.Text == k.listed && k.clock.Elapsed() < k.listAgain
}

func (k *Keeper) noteListed(stored Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	after := listLess
	if stored.Until.IsZero() { // as in most clusters
		after = listSeldom
	}
	k.listed, k.listAgain = stored.Text, k.clock.Elapsed()+after
}

// stop deletes what needs the permission, and returns how many objects it has found. It
// notes them first, in place of the permission that has ended: another process that has
// renewed it meanwhile is noticed by that, and nothing is deleted.
func (k *Keeper) stop(ctx context.Context, stored Record) (left int, err error) {
	all, err := k.cluster.Permitted(ctx)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	noted := stored
	noted.Stopping, noted.Stopped = true, slices.Clone(stored.Stopped)
	for _, h := range all {
		one := fmt.Sprintf("%s/%d", h.Workload, h.Attempt)
		if h.Workload != "" && len(noted.Stopped) < stoppedMost && !slices.Contains(noted.Stopped, one) {
			noted.Stopped = append(noted.Stopped, one)
		}
	}
	// What is listed here may need a permission that was stored after the record was read.
	if err := k.cluster.SetPermission(ctx, stored.Text, noted); err != nil {
		return len(all), err
	}
	k.mu.Lock()
	k.ends = 0 // what is created now would be deleted
	k.mu.Unlock()
	var failed []error
	for _, h := range all {
		if h.Deleting && h.Kind != "Pod" {
			continue
		}
		err := k.cluster.Stop(ctx, h)
		failed = append(failed, err)
		if err == nil && !h.Deleting {
			k.mu.Lock()
			k.stops++
			k.mu.Unlock()
		}
	}
	return len(all), errors.Join(failed...)
}

// WasStopped reports whether the objects of an attempt were deleted because the permission
// had ended.
func (k *Keeper) WasStopped(ctx context.Context, id workload.ID, attempt int) (bool, error) {
	stored, err := k.cluster.Permission(ctx)
	return slices.Contains(stored.Stopped, fmt.Sprintf("%s/%d", id, attempt)), err
}
