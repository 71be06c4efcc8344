package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/exit"
)

const (
	// lookEvery is how often the file of --written is looked at.
	lookEvery = 10 * time.Second
	// lookLeast is the least time between two looks.
	lookLeast = 100 * time.Millisecond
)

// written is a file that a job writes when it has saved its work.
type written struct {
	path           string
	seen, reported stamp
}

// stamp is what a write of a file changes; zero of a file that is not there.
type stamp struct{ nanoseconds, size int64 }

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime().UnixNano(), info.Size()}
}

// writtenFile returns the file as it is. What it has now was saved before.
func writtenFile(path string) *written {
	now := stampOf(path)
	return &written{path: path, seen: now, reported: now}
}

// due looks at the file. It reports whether it has been written since the last report, and was
// not written since the last look: then the job is done with it.
func (w *written) due() bool {
	before := w.seen
	w.seen = stampOf(w.path)
	return w.seen == before && w.seen != w.reported && w.seen != stamp{}
}

// reportWrites reports a checkpoint each time that the file has been written, until the command
// is stopped. A report that fails is tried again at the next look.
func (o *requestOptions) reportWrites(cmd *cobra.Command, name, path string, every time.Duration) error {
	if every < lookLeast {
		return exit.Usagef("--every %s: want %s at least", every, lookLeast)
	}
	ctx, file := cmd.Context(), writtenFile(path)
	if file.seen == (stamp{}) {
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
		if !file.due() {
			continue
		}
		err := o.run(cmd, name, o.checkpoint(time.Time{}))
		switch code := exit.Code(err); {
		case err == nil:
			file.reported = file.seen
		case ctx.Err() != nil:
			return nil
		case code == exit.Usage, code == exit.NotFound:
			return err
		default:
			fmt.Fprintf(cmd.ErrOrStderr(), "muster: %v; trying again in %s\n", err, every)
		}
	}
}
