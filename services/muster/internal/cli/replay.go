package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/times"
	"muster.dev/muster/services/queue-manager/replay"
)

// databaseURLVariable is that of queue-manager, which has the same database.
const databaseURLVariable = "MUSTER_QUEUE_MANAGER_DATABASE_URL"

// replayOptions are the flags of "replay".
type replayOptions struct {
	databaseURL, urlFile string
	since                string
	against              string
	play                 bool
	output               output.Format
}

func replayCommand() *cobra.Command {
	o := &replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Repeat recorded decisions and compare the outcomes",
		Long: `Read the decisions that queue-manager has recorded, repeat them on the recorded
inputs with the same code, and compare every outcome: the admissions with their
places, the evictions, and each reason. At the first difference the command shows
both lines and exits with code 8: the record was changed, or this build of Muster
decides differently from the one that recorded it.

With --against the recorded history is played again twice: as it was, and with another
policy or another release. Submissions, requests and nodes come as recorded, gangs run as
long as they did, and everything else is decided again. The answer compares waits,
utilisation and evictions, and lists the workloads that would have fared differently.
The value is a queues file, Kueue's manifests, or a program muster of another release.

The command only reads Postgres, so queue-manager may run meanwhile. It needs a login that is
a member of muster_queue_manager, because the recorded inputs contain manifests.`,
		Example: `  MUSTER_QUEUE_MANAGER_DATABASE_URL=postgres://... muster replay
  muster replay --database-url-file url --since 24h -o json
  muster replay --since 24h --against new-queues.yaml
  muster replay --since 24h --against ./muster-1.9`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.databaseURL, "database-url", "", "`URL` of queue-manager's database (default: $"+databaseURLVariable+"); put a password into the environment or a file")
	flags.StringVar(&o.urlFile, "database-url-file", "", "`file` that holds the URL")
	flags.StringVar(&o.since, "since", "", "begin with the term at this `time`: RFC 3339, or a duration ago (default: the first recorded term)")
	flags.StringVar(&o.against, "against", "", "play the history with the policy in this `file`, or with this program muster of another release, and compare")
	flags.BoolVar(&o.play, "play", false, "play the history as it was, and print what became of each workload; for --against of another release")
	program.AddOutput(cmd, flags, &o.output)
	return cmd
}

func (o *replayOptions) run(cmd *cobra.Command) error {
	url, err := databaseURL(o.databaseURL, o.urlFile)
	if err != nil {
		return err
	}
	since, err := times.Since(o.since, time.Now())
	if err != nil {
		return exit.Usagef("--since %q: want a time such as 2026-01-02T15:04:05Z, or how long ago, such as 24h", o.since)
	}
	if o.against != "" || o.play {
		return o.playback(cmd, url, since)
	}
	show, done := progress(cmd.ErrOrStderr())
	report, err := replay.Run(cmd.Context(), url, since, func(r replay.Report) {
		show("%d decisions replayed, up to version %d", r.Decisions, r.To)
	})
	done()
	if errors.Is(err, replay.ErrNoCheckpoint) {
		return exit.NotFoundf("replay: %w: queue-manager has recorded nothing yet, or has removed it (--keep-decisions)", err)
	}
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if !o.output.Data() {
		printReplay(cmd.OutOrStdout(), report)
	} else if err := output.Print(cmd.OutOrStdout(), o.output, report, nil); err != nil {
		return err
	}
	if report.Difference != nil {
		return exit.With(exit.Differs, nil)
	}
	return nil
}

// databaseURL is the first that is given: flag, file, environment.
func databaseURL(flag, file string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if file != "" {
		url, err := os.ReadFile(file)
		if err != nil {
			return "", exit.Usagef("database-url-file: %w", err)
		}
		return strings.TrimSpace(string(url)), nil
	}
	if url := os.Getenv(databaseURLVariable); url != "" {
		return url, nil
	}
	return "", exit.Usagef("no database given; want --database-url-file, --database-url or %s", databaseURLVariable)
}

func printReplay(out io.Writer, r replay.Report) {
	d := r.Difference
	if d == nil {
		fmt.Fprintf(out, "Identical: %d decisions on %d inputs in %d terms, versions %d to %d of the ledger.\n",
			r.Decisions, r.Inputs, r.Terms, r.From, r.To)
		return
	}
	fmt.Fprintf(out, "Identical: %d decisions in %d terms, from version %d to %d of the ledger.\n", r.Decisions, r.Terms, r.From, r.To)
	fmt.Fprintf(out, "Different: decision %d of epoch %d", d.Number, d.Epoch)
	if !d.At.IsZero() {
		fmt.Fprintf(out, ", version %d of the ledger, %s", d.Version, d.At.UTC().Format(time.RFC3339Nano))
	}
	fmt.Fprintf(out, ": %s\n", d.What)
	if d.Line != nil {
		fmt.Fprintf(out, "  line %d of its outcome\n  recorded: %s\n  replayed: %s\n", d.Line.Line, orNothing(d.Line.Recorded), orNothing(d.Line.Replayed))
	}
	if len(r.Releases) > 0 {
		fmt.Fprintf(out, "  decided by Muster %s\n", r.Releases[len(r.Releases)-1])
	}
}

func orNothing(line string) string {
	if line == "" {
		return "(nothing)"
	}
	return line
}
