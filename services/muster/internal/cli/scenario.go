package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/scenario"
	"muster.dev/muster/services/muster/internal/output"
)

// scenarioOptions are the flags of "scenario".
type scenarioOptions struct {
	output  string
	verbose bool
}

func scenarioCommand() *cobra.Command {
	o := &scenarioOptions{}
	cmd := &cobra.Command{
		Use:   "scenario FILE...",
		Short: "Play scenario files and compare what happens with what they expect",
		Long: `Play scenario files: nodes, queues, running and waiting workloads, then steps,
each an event and what is expected to be admitted, evicted, waiting and why. They
run in memory on the decisions that queue-manager makes; no NATS, Postgres or
Kubernetes is needed. docs/scenarios.md describes the format.

The exit code is 1 when a scenario comes out otherwise than it expects, and 2
when a file cannot be read.`,
		Example: `  muster scenario my-queues.yaml
  muster scenario -o json test/scenarios/*.yaml`,
		Args: args(1, -1, "at least one file"),
		RunE: o.run,
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", string(output.Plain), "`format`: table, json or yaml")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show what happens in each step, expected or not")
	completeFlag(cmd, "output", fixed([]output.Format{output.Plain, output.JSON, output.YAML}))
	return cmd
}

func (o *scenarioOptions) run(cmd *cobra.Command, files []string) error {
	format, err := output.ParseFormat(o.output)
	if err != nil {
		return usage("%w", err)
	}
	var played []output.Played
	different := 0
	for _, file := range files {
		content, err := readFile(file, cmd.InOrStdin())
		if err != nil {
			return usage("%w", err)
		}
		parsed, err := scenario.Parse(content)
		if err != nil {
			return usage("%s: %w", file, err)
		}
		outcome, err := scenario.Run(parsed)
		if err != nil {
			return usage("%s: %w", file, err)
		}
		if !outcome.Passed {
			different++
		}
		played = append(played, output.Played{File: file, Outcome: outcome})
	}
	if err := output.Scenarios(cmd.OutOrStdout(), format, played, o.verbose); err != nil {
		return err
	}
	if different > 0 {
		return fmt.Errorf("%d of %d scenarios came out otherwise than expected", different, len(played))
	}
	return nil
}
