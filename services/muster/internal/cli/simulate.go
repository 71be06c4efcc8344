package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/swf"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// simulateOptions are the flags of "simulate".
type simulateOptions struct {
	trace    string
	nodes    int
	policies []string
	eta      bool
	output   output.Format
}

func simulateCommand() *cobra.Command {
	o := &simulateOptions{}
	cmd := &cobra.Command{
		Use:   "simulate --trace FILE",
		Short: "Simulate a log of jobs and measure the waiting times",
		Long: `Simulate a log of parallel jobs in the Standard Workload Format, plain or compressed
with gzip, with the decisions of queue-manager, and measure how long the jobs wait.
The command needs no NATS, Postgres or Kubernetes.

Each job is a gang of one pod per processor on as many nodes of one processor
each as --nodes says; its requested time is its declared run time. The command leaves
out and counts jobs that ask for more, or lack a run time or a requested time.

With --eta each job that has to wait gets an estimated start time when it is submitted,
as in a running Muster: from the present jobs, and from earlier run times and waits. The
result shows how many jobs started by their p50 and p90.

Policies:
` + policyHelp() + `
With one policy -o json prints an object, with several a list of them.`,
		Example: `  muster simulate --trace KTH-SP2-1996-2.swf --nodes 100 --policy easy
  muster simulate --trace KTH-SP2-1996-2.swf.gz --policy fcfs,easy,shortest-first -o json`,
		Args: program.Args(0, 0, "no argument, but --trace FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.trace, "trace", "", "the log, an SWF `file`; - is standard input")
	flags.IntVar(&o.nodes, "nodes", 0, "the `number` of nodes (default: the log's MaxNodes, else MaxProcs)")
	flags.StringSliceVar(&o.policies, "policy", []string{"easy"}, "the `policies` to simulate, one after the other")
	flags.BoolVar(&o.eta, "eta", false, "estimate the start time of each job that waits, and score the estimates")
	program.AddOutput(cmd, flags, &o.output)
	program.CompleteFlag(cmd, "policy", program.Fixed(policyNames()))
	return cmd
}

func policyNames() []string {
	var names []string
	for _, policy := range simulation.Policies() {
		names = append(names, policy.Name)
	}
	return names
}

func policyHelp() string {
	var lines strings.Builder
	for _, policy := range simulation.Policies() {
		fmt.Fprintf(&lines, "  %-16s %s\n", policy.Name, policy.Means)
	}
	return lines.String()
}

func (o *simulateOptions) run(cmd *cobra.Command) error {
	policies, err := o.check()
	if err != nil {
		return err
	}
	log, err := o.read(cmd)
	if err != nil {
		return exit.Usagef("%w", fault.Of(err).In(o.trace))
	}
	nodes, err := o.size(cmd, log)
	if err != nil {
		return err
	}
	results := make([]simulation.Result, 0, len(policies))
	for _, policy := range policies {
		show, done := progress(cmd.ErrOrStderr())
		result, err := simulation.Run(log, nodes, policy, simulation.Options{ETA: o.eta, Progress: func(submitted, jobs int) error {
			show("%s: %d of %d jobs submitted", policy.Name, submitted, jobs)
			return cmd.Context().Err()
		}})
		done()
		if errors.Is(err, simulation.ErrNoJobs) {
			return exit.Usagef("%s: %w", o.trace, err)
		}
		if err != nil {
			return fmt.Errorf("simulate %q with policy %s: %w", o.trace, policy.Name, err)
		}
		results = append(results, result)
	}
	var value any = results
	if len(results) == 1 {
		value = results[0]
	}
	return output.Print(cmd.OutOrStdout(), o.output, value, func() output.Table { return output.Simulations(results) })
}

func (o *simulateOptions) check() ([]simulation.Policy, error) {
	if o.trace == "" {
		return nil, exit.Usagef("--trace is missing; want an SWF file")
	}
	if len(o.policies) == 0 {
		return nil, exit.Usagef("--policy is empty; want one or more of %s", strings.Join(policyNames(), ", "))
	}
	var policies []simulation.Policy
	for _, name := range o.policies {
		policy, err := simulation.ParsePolicy(name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		policies = append(policies, policy)
	}
	return policies, nil
}

func (o *simulateOptions) read(cmd *cobra.Command) (swf.Log, error) {
	if o.trace == "-" {
		return swf.Read(cmd.InOrStdin())
	}
	file, err := os.Open(o.trace)
	if err != nil {
		return swf.Log{}, err
	}
	defer func() { _ = file.Close() }()
	return swf.Read(file)
}

// size is the number of nodes to simulate.
func (o *simulateOptions) size(cmd *cobra.Command, log swf.Log) (int, error) {
	nodes, said := int64(o.nodes), cmd.Flags().Changed("nodes")
	from := "--nodes"
	for _, header := range []string{"MaxNodes", "MaxProcs"} {
		if !said {
			if nodes, said = log.Number(header); said {
				from = o.trace + ": " + header
			}
		}
	}
	switch {
	case !said:
		return 0, exit.Usagef("%s has neither MaxNodes nor MaxProcs; set the number of nodes with --nodes", o.trace)
	case nodes < 1 || nodes > simulation.MostNodes:
		return 0, exit.Usagef("%s %d: want 1 to %d; set the number of nodes with --nodes", from, nodes, simulation.MostNodes)
	}
	return int(nodes), nil
}

// progress returns how to show one line that is written over and over, and how
// to remove it. Only a terminal is shown it.
func progress(w io.Writer) (show func(format string, args ...any), done func()) {
	if behind, is := w.(interface{ Unwrap() io.Writer }); is {
		w = behind.Unwrap()
	}
	file, isFile := w.(*os.File)
	if isFile {
		info, err := file.Stat()
		isFile = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !isFile {
		return func(string, ...any) {}, func() {}
	}
	const clearLine = "\r\x1b[K"
	return func(format string, args ...any) { fmt.Fprintf(w, clearLine+format, args...) }, func() { fmt.Fprint(w, clearLine) }
}
