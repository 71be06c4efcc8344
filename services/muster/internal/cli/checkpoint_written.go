package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/exit"
)

const (
	// lookEvery is how often the file of --written is looked at; lookLeast and lookMost bound it.
	lookEvery = 10 * time.Second
	lookLeast = 100 * time.Millisecond
	lookMost  = time.Hour
)

// written is a file that a job writes when it has saved its work.
type written struct {
	path           string
	seen, reported stamp
	since          time.Time // when what is seen was seen first
}

// stamp is what a write of a file changes; zero of a file that is not there.
type stamp struct{ nanoseconds, size int64 }

// stampOf fails for what is no file, and where the file cannot be looked at: that does not mean
// that it is not there.
func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stamp{}, nil
	case err != nil:
		return stamp{}, err
	case !info.Mode().IsRegular():
		return stamp{}, fmt.Errorf("%s is no regular file; name one that the job writes when it has saved its work", path)
	}
	return stamp{info.ModTime().UnixNano(), info.Size()}, nil
}

// writtenFile returns the file as it is. What it has now was saved before.
func writtenFile(path string) (*written, error) {
	now, err := stampOf(path)
	return &written{path: path, seen: now, reported: now}, err
}

// due looks at the file. It reports whether it has been written since the last report, and was
// not written since the last look: then the job is done with it.
func (w *written) due(now time.Time) (bool, error) {
	before := w.seen
	seen, err := stampOf(w.path)
	if err != nil {
		return false, err
	}
	if w.seen = seen; seen != before {
		w.since = now
	}
	return seen == before && seen != w.reported && seen != stamp{}, nil
}

// savedAt is when the work was saved, for a report that is made now: zero, the time at which
// queue-manager reads it, unless earlier reports have failed meanwhile. The clock here may be
// wrong, so it only counts how long ago that is.
func (w *written) savedAt(now time.Time, every time.Duration) time.Time {
	if late := now.Sub(w.since); late > 2*every+lookEvery {
		return now.Add(-late)
	}
	return time.Time{}
}

// reportWrites reports a checkpoint each time that the file has been written, until the command
// is stopped or the workload has ended. A report that fails is tried again at the next look.
func (o *requestOptions) reportWrites(cmd *cobra.Command, name, path string, every time.Duration) error {
	if every < lookLeast || every > lookMost {
		return exit.Usagef("--every %s: want %s to %s", every, lookLeast, lookMost)
	}
	ctx, said := cmd.Context(), ""
	file, err := writtenFile(path)
	switch {
	case err != nil:
		return exit.Usagef("--written: %v", err)
	case file.seen == stamp{}:
		fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s is not there yet\n", path)
	}
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		now := time.Now()
		due, err := file.due(now)
		if err == nil && due {
			err = o.run(cmd, name, o.checkpoint(file.savedAt(now, every)))
		}
		switch code := exit.Code(err); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if said = ""; due {
				file.reported = file.seen
			}
		case errors.Is(err, errEnded):
			fmt.Fprintf(cmd.ErrOrStderr(), "muster: %v\n", err)
			return nil
		case code == exit.Usage, code == exit.NotFound:
			return err
		case err.Error() != said:
			said = err.Error()
			fmt.Fprintf(cmd.ErrOrStderr(), "muster: %v; trying again every %s\n", err, every)
		}
	}
}
