package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// simulateOptions are the flags of "simulate".
type simulateOptions struct {
	trace    string
	nodes    int
	policies []string
	queues   string
	fleet    string
	queue    string
	pod      string
	eta      bool
	diagram  string
	known    bool
	model    lublinModel
	windows  []int
	urgent   int
	victims  string
	output   output.Format
}

func simulateCommand() *cobra.Command {
	o := &simulateOptions{}
	cmd := &cobra.Command{
		Use:   "simulate --trace FILE",
		Short: "Simulate a log of jobs and measure the waiting times",
		Long: `Simulate a log of jobs with the decisions of queue-manager, and measure how long the
jobs wait. The command needs no NATS, Postgres or Kubernetes.

The log is in the Standard Workload Format, plain or compressed with gzip; or a list of
submissions in Muster's own format; or a pod list of Alibaba's cluster-trace-gpu-v2023.
docs/simulation.md describes them. In the Standard Workload Format each job is a gang of
one pod per processor, and its requested time is its declared run time. The command leaves
out and counts jobs that ask for more processors than there are, or lack a run time or a
requested time.

--fleet has the nodes: a fleet file of the dev cluster, the nodes of a scenario, or the
machine list of that trace. Without it there are --nodes nodes of one processor each.
--queues has the queues and the policy, as queue-manager reads them. Without it there is
one queue, and --policy is how it decides.

--model lublin makes a log instead of reading one, by the model of Lublin and Feitelson:
--jobs, --seed and --load shape it, and --nodes is the size of the machine. With --windows
only parts of 1,024 jobs are simulated, each on an empty cluster, and summed up: a number
of parts, evenly spaced, or parts that begin with the jobs of the given numbers, from 0.

With --eta each job that has to wait gets an estimated start time when it is submitted,
as in a running Muster: from the present jobs, and from earlier run times and waits. The
result shows how many jobs started by their p50 and p90. -o json has this for each tenth,
and --diagram FILE draws it.

Policies:
` + policyHelp() + `
conservative-N is the same as conservative-10 for any N from 1 to 1,000.

With one policy -o json prints an object, with several a list of them.`,
		Example: `  muster simulate --trace KTH-SP2-1996-2.swf --nodes 100 --policy easy
  muster simulate --trace KTH-SP2-1996-2.swf.gz --policy fcfs,easy,shortest-first -o json
  muster simulate --model lublin --nodes 256 --load 0.8 --windows 10 --policy easy,stretch
  muster simulate --trace submissions.jsonl --queues queues.yaml --fleet fleet.yaml`,
		Args: program.Args(0, 0, "no argument, but --trace FILE or --model lublin"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.trace, "trace", "", "the log, a `file`; - is standard input")
	flags.IntVar(&o.nodes, "nodes", 0, "the `number` of nodes (default: the log's MaxNodes, else MaxProcs)")
	flags.StringVar(&o.fleet, "fleet", "", "the nodes, a `file`, instead of --nodes")
	flags.StringVar(&o.queues, "queues", "", "the queues and the policy, a `file`, instead of --policy")
	flags.StringVar(&o.queue, "queue", "", "the `queue` of jobs that name none (default: the only queue of --queues)")
	flags.StringVar(&o.pod, "pod", "", "with --fleet, what the pod of a processor `requests`, such as cpu=4,nvidia.com/gpu=1 (default cpu=1)")
	flags.StringSliceVar(&o.policies, "policy", []string{"easy"}, "the `policies` to simulate, one after the other")
	flags.BoolVar(&o.known, "known-run-times", false, "jobs of a log declare the time that they run, and not the time that they requested")
	flags.IntSliceVar(&o.windows, "windows", nil, "simulate this number of parts of 1,024 jobs, or the parts that begin with the jobs of these `numbers`")
	o.model.add(flags)
	flags.IntVar(&o.urgent, "urgent", 0, "the `percent` of the jobs that have a higher priority; with --policy others are evicted for them")
	flags.StringVar(&o.victims, "victims", "regret", "which jobs are evicted: regret as queue-manager chooses, or by the `order` kueue or fewest, to compare")
	flags.BoolVar(&o.eta, "eta", false, "estimate the start time of each job that waits, and score the estimates")
	flags.StringVar(&o.diagram, "diagram", "", "with --eta and one policy, write the reliability diagram of the estimates to this `file`, as SVG")
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
	sites, err := o.sites(cmd)
	if err != nil {
		return err
	}
	jobs, left, sites, err := o.jobs(cmd, sites)
	if err != nil {
		return err
	}
	victims, err := admission.ParseVictimOrder(o.victims)
	if err != nil {
		return exit.Usagef("--victims: %w", err)
	}
	windows, err := o.split(simulation.Urgent(jobs, o.urgent))
	if err != nil {
		return err
	}
	// What a decision allocates is gone after it, so a larger heap saves a part of the time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	results := make([]simulation.Result, 0, len(sites))
	for _, s := range sites {
		show, done := progress(cmd.ErrOrStderr())
		result, err := simulation.PlayWindows(windows, s.Site, simulation.Options{ETA: o.eta, Victims: victims, Progress: func(submitted, jobs int) error {
			show("%s: %d of %d jobs submitted", s.name, submitted, jobs)
			return cmd.Context().Err()
		}})
		done()
		if errors.Is(err, simulation.ErrNoJobs) {
			return exit.Usagef("%s: %w", o.source(), err)
		}
		if err != nil {
			return fmt.Errorf("simulate %q with policy %s: %w", o.source(), s.name, err)
		}
		result.Policy, result.Left = s.name, left
		for _, why := range result.Examples {
			fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s: %d jobs could not run, such as %s\n", s.name, result.Unplayed, why)
		}
		results = append(results, result)
	}
	if err := o.draw(results[0]); err != nil {
		return err
	}
	var value any = results
	if len(results) == 1 {
		value = results[0]
	}
	return output.Print(cmd.OutOrStdout(), o.output, value, func() output.Table { return output.Simulations(results) })
}

// draw writes the diagram that was asked for.
func (o *simulateOptions) draw(result simulation.Result) error {
	if o.diagram == "" {
		return nil
	}
	svg, err := output.Reliability(result)
	if err == nil {
		err = os.WriteFile(o.diagram, []byte(svg), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the diagram %q: %w", o.diagram, err)
	}
	return nil
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
