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

// Look stops what needs the permission if that has ended, and returns when to look again.
func (k *Keeper) Look(ctx context.Context) (again time.Duration, err error) {
	stored, err := k.cluster.Permission(ctx)
	switch {
	case err != nil:
		return lookAgain, err
	case !k.over(stored):
		return lookAgain, nil
	}
	left, err := k.stop(ctx, stored)
	switch {
	case err != nil || left > 0:
		return lookAgain, err
	case stored.Until.IsZero(): // most clusters have none
		return lookSeldom, nil
	}
	return lookLess, nil
}

// How long to the next look: while there is a permission or something to stop, when it has
// ended and nothing is left, and while there is none.
const (
	lookAgain  = time.Second
	lookLess   = 5 * time.Second
	lookSeldom = time.Minute
)

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
