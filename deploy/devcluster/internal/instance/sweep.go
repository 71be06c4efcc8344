package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const stopPollInterval = 20 * time.Millisecond

// Sweep removes the directories of this user's instances that were killed before
// they could clean up, and returns their names. It leaves alone what is running.
func Sweep() ([]string, error) {
	entries, err := os.ReadDir(root())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for stale instances: %w", err)
	}
	var swept []string
	var faults []error
	for _, entry := range entries {
		dir, err := Locate(entry.Name(), "")
		if err != nil || !entry.IsDir() {
			continue // Not made by us.
		}
		if _, err := os.Stat(dir.File(lockFile)); err != nil {
			continue // Being made or removed at this moment.
		}
		lock, err := acquire(dir.File(lockFile))
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("sweeping instance %q: %w", dir.Name, err))
			continue
		}
		lock.dir = dir
		if err := lock.Remove(); err != nil {
			faults = append(faults, fmt.Errorf("sweeping instance %q: %w", dir.Name, err))
			continue
		}
		swept = append(swept, dir.Name)
	}
	return swept, errors.Join(faults...)
}

// Stop ends a running instance and waits until its directory is free. An
// instance that does not obey in time is killed; the kernel then ends its
// components, and what it leaves on disk is removed here.
func (d Dir) Stop(ctx context.Context, patience time.Duration) error {
	state, err := d.Load()
	if err != nil {
		return err
	}
	if err := syscall.Kill(state.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping instance %q (pid %d): %w", d.Name, state.PID, err)
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.waitFree(patient) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopping instance %q: %w", d.Name, err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing instance %q (pid %d): %w", d.Name, state.PID, err)
	}
	if err := d.waitFree(ctx); err != nil {
		return fmt.Errorf("waiting for the end of instance %q (pid %d): %w", d.Name, state.PID, err)
	}
	lock, err := acquire(d.File(lockFile))
	if err != nil {
		return fmt.Errorf("cleaning up instance %q: %w", d.Name, err)
	}
	lock.dir = d
	return lock.Remove()
}

func (d Dir) waitFree(ctx context.Context) error {
	tick := time.NewTicker(stopPollInterval)
	defer tick.Stop()
	for d.Running() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// List returns the running instances in the usual place.
func List() ([]Dir, error) {
	entries, err := os.ReadDir(root())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	var dirs []Dir
	for _, entry := range entries {
		if dir, err := Locate(entry.Name(), ""); err == nil && dir.Running() {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
