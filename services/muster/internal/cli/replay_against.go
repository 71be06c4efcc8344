package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/queue-manager/replay"
)

// apartInPlay is how far two starts have to be from each other to differ in a comparison: a
// simulation admits at once, where a leader takes a moment.
const apartInPlay = time.Second

// mostPolicy bounds the file of a policy.
const mostPolicy = 4 << 20

// comparison is what --against answers.
type comparison struct {
	Now     replay.Playback `json:"now"`
	Against replay.Playback `json:"against"`
	// Classes counts the differences, which are in the order of submission.
	Classes     map[string]int        `json:"classes"`
	Differences []estimate.Difference `json:"differences"`
}

// playback plays the history, and compares if another policy or release is given.
func (o *replayOptions) playback(cmd *cobra.Command, url string, since time.Time) error {
	now, err := o.playWith(cmd, url, since, nil)
	if err != nil {
		return err
	}
	if o.against == "" {
		return output.Print(cmd.OutOrStdout(), o.output, now, func() output.Table { return output.Playbacks(now.Recorded, now.Played, nil) })
	}
	against, err := o.playAgainst(cmd, url, since)
	if err != nil {
		return err
	}
	found := comparison{
		Now: now, Against: against, Classes: map[string]int{},
		Differences: estimate.Classify(now.Played.ByID(), against.Played.ByID(), apartInPlay),
	}
	for _, d := range found.Differences {
		found.Classes[d.Class]++
	}
	if o.output.Data() {
		return output.Print(cmd.OutOrStdout(), o.output, found, nil)
	}
	return o.printComparison(cmd, found)
}

func (o *replayOptions) playWith(cmd *cobra.Command, url string, since time.Time, policy *state.Settings) (replay.Playback, error) {
	show, done := progress(cmd.ErrOrStderr())
	defer done()
	played, err := replay.Play(cmd.Context(), url, since, policy, func(r replay.Report) { show("%d decisions read, up to version %d", r.Decisions, r.To) })
	if errors.Is(err, replay.ErrNoCheckpoint) {
		return played, exit.NotFoundf("replay: %w: queue-manager has recorded nothing yet, or has removed it (--keep-decisions)", err)
	}
	if err != nil {
		return played, fmt.Errorf("replay: %w", err)
	}
	return played, nil
}

// playAgainst plays with the policy in a file, or has another program play.
func (o *replayOptions) playAgainst(cmd *cobra.Command, url string, since time.Time) (replay.Playback, error) {
	of, err := os.Stat(o.against)
	if err != nil {
		return replay.Playback{}, exit.Usagef("--against: %w", err)
	}
	if of.Mode().IsRegular() && of.Mode().Perm()&0o111 != 0 {
		return playProgram(cmd.Context(), o.against, url, since)
	}
	if of.Size() > mostPolicy {
		return replay.Playback{}, exit.Usagef("--against %s: %d bytes; want a queues file of at most %d", o.against, of.Size(), mostPolicy)
	}
	content, err := os.ReadFile(o.against)
	if err != nil {
		return replay.Playback{}, exit.Usagef("--against: %w", err)
	}
	policy, err := replay.ReadPolicy(content)
	if err != nil {
		return replay.Playback{}, exit.Usagef("--against %s: %w", o.against, err)
	}
	return o.playWith(cmd, url, since, policy)
}

// playProgram has a program muster of another release play the history. The URL of the database
// goes through the environment, because arguments are visible to others.
func playProgram(ctx context.Context, path, url string, since time.Time) (played replay.Playback, err error) {
	arguments := []string{"replay", "--play", "--output", "json"}
	if !since.IsZero() {
		arguments = append(arguments, "--since", since.UTC().Format(time.RFC3339Nano))
	}
	program := exec.CommandContext(ctx, path, arguments...)
	program.Env = append(os.Environ(), databaseURLVariable+"="+url)
	program.Stderr = os.Stderr
	answer := &answerOfProgram{}
	program.Stdout = answer
	switch err := program.Run(); {
	case answer.tooLong:
		return played, fmt.Errorf("replay with %s: its answer has more than %d bytes", path, mostPlayback)
	case err != nil:
		return played, fmt.Errorf("replay with %s: %w; it must have replay --play", path, err)
	}
	if err := json.Unmarshal(answer.Bytes(), &played); err != nil {
		return played, fmt.Errorf("replay with %s: read its answer: %w", path, err)
	}
	return played, nil
}

// mostPlayback bounds the answer of a program, which has a line for each workload.
const mostPlayback = 1 << 30

// answerOfProgram takes in what a program prints, up to the bound; then the program fails.
type answerOfProgram struct {
	bytes.Buffer
	tooLong bool
}

// Write implements io.Writer.
func (a *answerOfProgram) Write(part []byte) (int, error) {
	if a.tooLong = a.Len()+len(part) > mostPlayback; a.tooLong {
		return 0, io.ErrShortWrite
	}
	return a.Buffer.Write(part)
}

func (o *replayOptions) printComparison(cmd *cobra.Command, c comparison) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%d decisions from %s to %s, recorded by Muster %s.\n\n", c.Now.Decisions, c.Now.From.UTC().Format(time.RFC3339), c.Now.To.UTC().Format(time.RFC3339), c.Now.RecordedBy)
	if err := output.Print(out, output.Text, nil, func() output.Table { return output.Playbacks(c.Now.Recorded, c.Now.Played, &c.Against.Played) }); err != nil {
		return err
	}
	if len(c.Differences) == 0 {
		fmt.Fprintln(out, "\nNo workload fares differently.")
		return nil
	}
	fmt.Fprintf(out, "\n%d workloads fare differently:", len(c.Differences))
	for i, class := range slices.Sorted(maps.Keys(c.Classes)) {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, " %d %s", c.Classes[class], class)
	}
	fmt.Fprint(out, ".\n\n")
	return output.Print(out, output.Text, nil, func() output.Table { return output.Fared(c.Differences) })
}
