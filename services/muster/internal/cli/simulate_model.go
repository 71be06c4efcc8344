package cli

import (
	"cmp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/pkg/whatif/lublin"
	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/swf"
	"muster.dev/muster/services/internal/client/exit"
)

// lublinModel is the flags of a log that is made.
type lublinModel struct {
	name string
	jobs int
	seed uint64
	load float64
}

const (
	lublinName = "lublin"
	// lublinNodes is the size of the machine without --nodes.
	lublinNodes = 256
)

func (m *lublinModel) add(flags *pflag.FlagSet) {
	flags.StringVar(&m.name, "model", "", "make a log by this `model`, instead of --trace; the only one is lublin")
	flags.IntVar(&m.jobs, "jobs", 10_000, "with --model, the `number` of jobs")
	flags.Uint64Var(&m.seed, "seed", 1, "with --model, the `number` that the random choices begin with")
	flags.Float64Var(&m.load, "load", 0, "with --model, the `part` of the processors' time that the jobs ask for (default: that of the model)")
}

// firstChanged returns the first of some flags that is given, or nothing.
func firstChanged(cmd *cobra.Command, names ...string) string {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

func (m *lublinModel) log(nodes int) (swf.Log, error) {
	if m.name != lublinName {
		return swf.Log{}, exit.Usagef("--model %s: the only model is %s", m.name, lublinName)
	}
	log, err := lublin.Generate(lublin.Config{Jobs: m.jobs, Processors: cmp.Or(nodes, lublinNodes), Seed: m.seed, Load: m.load})
	if err != nil {
		return swf.Log{}, exit.Usagef("--model %s: %w", m.name, err)
	}
	return log, nil
}

// split returns the parts of the jobs that --windows wants; without it they are one part.
func (o *simulateOptions) split(jobs []simulation.Job) ([][]simulation.Job, error) {
	windows, err := simulation.Windows(jobs, o.windows)
	if err != nil {
		return nil, exit.Usagef("--windows: %w", err)
	}
	return windows, nil
}
