package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/whatif/scenario"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// scenarioOptions are the flags of "scenario".
type scenarioOptions struct {
	output  output.Format
	queues  string
	explain bool
	verbose bool
}

func scenarioCommand() *cobra.Command {
	o := &scenarioOptions{}
	cmd := &cobra.Command{
		Use:   "scenario FILE...",
		Short: "Run scenario files and check what they expect",
		Long: `Run scenario files: nodes, queues, running and waiting workloads, then steps, each
an event and the admissions, evictions and reasons that it should cause. They run
in memory with the decisions of queue-manager, without NATS, Postgres or Kubernetes.
docs/scenarios.md describes the format.

With --queues the scenarios use the queues and the policy of that file, which is a
queues file of queue-manager, and must have none of their own.

The exit code is 1 when a scenario differs from what it expects, or expects nothing,
and 2 when a file cannot be read. The command prints all faults of all files, each as
FILE:LINE.`,
		Example: `  muster scenario my-queues.yaml
  muster scenario --queues queues.yaml scenarios/*.yaml
  muster scenario --explain my-queues.yaml
  muster scenario -o json test/scenarios/*.yaml`,
		Args: program.Args(1, -1, "at least one file"),
		RunE: o.run,
	}
	flags := cmd.Flags()
	program.AddOutput(cmd, flags, &o.output)
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show what happens in each step, expected or not")
	flags.BoolVar(&o.explain, "explain", false, "explain the workloads that wait at the end, as muster explain does")
	flags.StringVar(&o.queues, "queues", "", "run the scenarios with the queues of this `file`, in Muster's form or as Kueue's manifests")
	return cmd
}

func (o *scenarioOptions) run(cmd *cobra.Command, files []string) error {
	queues, err := o.readQueues(cmd)
	if err != nil {
		return err
	}
	var played []output.Played
	var faults fault.List
	different, unchecked := 0, 0
	for _, file := range files {
		outcome, err := o.play(file, cmd.InOrStdin(), queues)
		switch {
		case err != nil:
			faults = append(faults, fault.Of(err).In(file)...)
			continue
		case outcome.Checked == 0:
			unchecked++
		case !outcome.Passed:
			different++
		}
		played = append(played, output.Played{File: file, Outcome: outcome})
	}
	if len(played) > 0 {
		if err := output.Scenarios(cmd.OutOrStdout(), o.output, played, o.verbose); err != nil {
			return err
		}
	}
	switch {
	case len(faults) > 0:
		return exit.Usagef("%w", faults)
	case different > 0:
		return fmt.Errorf("%d of %d scenarios differ from what they expect", different, len(played))
	case unchecked > 0:
		return fmt.Errorf("%d of %d scenarios have no step with expect, so nothing was checked", unchecked, len(played))
	}
	return nil
}

// readQueues reads the queues that the scenarios are played with; nil for their own.
func (o *scenarioOptions) readQueues(cmd *cobra.Command) (*queuesfile.File, error) {
	if o.queues == "" {
		return nil, nil
	}
	file, err := readQueuesFile(cmd, o.queues)
	if err != nil {
		return nil, err
	}
	return &file, nil
}

// readQueuesFile reads a queues file, and prints what it notes.
func readQueuesFile(cmd *cobra.Command, name string) (queuesfile.File, error) {
	content, err := readFile(name, cmd.InOrStdin())
	if err != nil {
		return queuesfile.File{}, exit.Usagef("queues: %w", err)
	}
	file, notes, err := queuesfile.Read(content)
	if err != nil {
		return queuesfile.File{}, exit.Usagef("%w", fault.Of(err).In(name))
	}
	for _, note := range notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s: %s\n", name, note)
	}
	return file, nil
}

func (o *scenarioOptions) play(file string, in io.Reader, queues *queuesfile.File) (scenario.Outcome, error) {
	content, err := readFile(file, in)
	if err != nil {
		return scenario.Outcome{}, err
	}
	parsed, err := scenario.ParseWith(content, queues)
	if err != nil {
		return scenario.Outcome{}, err
	}
	if o.explain {
		return scenario.RunExplained(parsed)
	}
	return scenario.Run(parsed)
}
