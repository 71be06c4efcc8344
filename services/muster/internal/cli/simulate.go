package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/scenario"
	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/submissions"
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
machine list of that trace. Without it there are as many nodes of one processor each as
--nodes says. --queues has the queues and the policy, as queue-manager reads them. Without
it there is one queue, and --policy says how it decides.

With --eta each job that has to wait gets an estimated start time when it is submitted,
as in a running Muster: from the present jobs, and from earlier run times and waits. The
result shows how many jobs started by their p50 and p90.

Policies:
` + policyHelp() + `
With one policy -o json prints an object, with several a list of them.`,
		Example: `  muster simulate --trace KTH-SP2-1996-2.swf --nodes 100 --policy easy
  muster simulate --trace KTH-SP2-1996-2.swf.gz --policy fcfs,easy,shortest-first -o json
  muster simulate --trace submissions.jsonl --queues queues.yaml --fleet fleet.yaml`,
		Args: program.Args(0, 0, "no argument, but --trace FILE"),
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
	sites, err := o.sites(cmd)
	if err != nil {
		return err
	}
	jobs, left, sites, err := o.jobs(cmd, sites)
	if err != nil {
		return err
	}
	results := make([]simulation.Result, 0, len(sites))
	for _, s := range sites {
		show, done := progress(cmd.ErrOrStderr())
		result, err := simulation.Play(jobs, s.Site, simulation.Options{ETA: o.eta, Progress: func(submitted, jobs int) error {
			show("%s: %d of %d jobs submitted", s.name, submitted, jobs)
			return cmd.Context().Err()
		}})
		done()
		if errors.Is(err, simulation.ErrNoJobs) {
			return exit.Usagef("%s: %w", o.trace, err)
		}
		if err != nil {
			return fmt.Errorf("simulate %q with policy %s: %w", o.trace, s.name, err)
		}
		result.Policy, result.Left = s.name, left
		for _, why := range result.Examples {
			fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s: %d jobs could not run, such as %s\n", s.name, result.Unplayed, why)
		}
		results = append(results, result)
	}
	var value any = results
	if len(results) == 1 {
		value = results[0]
	}
	return output.Print(cmd.OutOrStdout(), o.output, value, func() output.Table { return output.Simulations(results) })
}

// namedSite is a site under the name of its policy.
type namedSite struct {
	name string
	simulation.Site
}

// sites returns the sites to simulate. Without --fleet they have no nodes yet.
func (o *simulateOptions) sites(cmd *cobra.Command) ([]namedSite, error) {
	if o.trace == "" {
		return nil, exit.Usagef("--trace is missing; want a file")
	}
	if o.fleet != "" && cmd.Flags().Changed("nodes") {
		return nil, exit.Usagef("--nodes %d and --fleet %s: want one of them", o.nodes, o.fleet)
	}
	if o.queue != "" && o.queues == "" {
		return nil, exit.Usagef("--queue %s without --queues: the only queue is the one that --policy makes", o.queue)
	}
	if o.queues != "" && cmd.Flags().Changed("policy") {
		return nil, exit.Usagef("--policy %s and --queues %s: want one of them", strings.Join(o.policies, ","), o.queues)
	}
	nodes, err := o.fleetNodes(cmd)
	if err != nil {
		return nil, err
	}
	if o.queues != "" {
		site, err := o.ownQueues(cmd)
		site.Nodes = nodes
		return []namedSite{{o.queues, site}}, err
	}
	if len(o.policies) == 0 {
		return nil, exit.Usagef("--policy is empty; want one or more of %s", strings.Join(policyNames(), ", "))
	}
	var sites []namedSite
	for _, name := range o.policies {
		policy, err := simulation.ParsePolicy(name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		sites = append(sites, namedSite{policy.Name, policy.On(nodes)})
	}
	o.queue = sites[0].Queues[0].Name
	return sites, nil
}

func (o *simulateOptions) fleetNodes(cmd *cobra.Command) ([]capacity.Node, error) {
	if o.fleet == "" {
		return nil, nil
	}
	content, err := readFile(o.fleet, cmd.InOrStdin())
	if err != nil {
		return nil, exit.Usagef("fleet: %w", err)
	}
	nodes, err := scenario.ReadFleet(content)
	if err != nil {
		return nil, exit.Usagef("%w", fault.Of(err).In(o.fleet))
	}
	return nodes, nil
}

// ownQueues returns a site with the queues of --queues.
func (o *simulateOptions) ownQueues(cmd *cobra.Command) (simulation.Site, error) {
	file, err := readQueuesFile(cmd, o.queues)
	if err != nil {
		return simulation.Site{}, err
	}
	site := simulation.Site{Policy: file.Config}
	for _, q := range file.Queues {
		site.Queues = append(site.Queues, state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules})
	}
	if o.queue == "" && len(site.Queues) == 1 {
		o.queue = site.Queues[0].Name
	}
	return site, nil
}

// jobs reads the jobs, and completes the sites with as many nodes as the log has where
// there is no fleet.
func (o *simulateOptions) jobs(cmd *cobra.Command, sites []namedSite) ([]simulation.Job, simulation.Left, []namedSite, error) {
	var left simulation.Left
	shape, err := o.shape()
	if err != nil {
		return nil, left, nil, err
	}
	in := cmd.InOrStdin()
	if o.trace != "-" {
		file, err := os.Open(o.trace)
		if err != nil {
			return nil, left, nil, exit.Usagef("%w", fault.Of(err).In(o.trace))
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	read, err := submissions.Read(in, shape)
	if err != nil {
		return nil, left, nil, exit.Usagef("%w", fault.Of(err).In(o.trace))
	}
	if read.Log != nil && o.queue == "" {
		return nil, left, nil, exit.Usagef("--queue is missing; %s has several queues, and the log says of no job which one is its", o.queues)
	}
	most := 0
	if o.fleet == "" {
		if most, err = o.size(cmd, read); err != nil {
			return nil, left, nil, err
		}
		for i := range sites {
			sites[i].Nodes = simulation.Alike(most)
		}
	}
	jobs, left, err := read.Jobs(most)
	if err != nil {
		return nil, left, nil, exit.Usagef("%s: %w", o.trace, err)
	}
	return jobs, left, sites, nil
}

// shape says what the log leaves open.
func (o *simulateOptions) shape() (submissions.Options, error) {
	shape := submissions.Options{Queue: o.queue}
	switch {
	case o.fleet == "" && o.pod != "":
		return shape, exit.Usagef("--pod %s without --fleet: nodes of one processor have nothing else to offer", o.pod)
	case o.fleet == "":
		return shape, nil
	}
	shape.Pod = resource.List{}
	for _, part := range strings.Split(cmp.Or(o.pod, "cpu=1"), ",") {
		name, text, is := strings.Cut(part, "=")
		if !is || name == "" {
			return shape, exit.Usagef("--pod: %q: want a resource and an amount, such as nvidia.com/gpu=1", part)
		}
		amount, err := resource.Parse(resource.Name(name), text)
		if err != nil {
			return shape, exit.Usagef("--pod: %w", err)
		}
		shape.Pod[resource.Name(name)] = amount
	}
	return shape, nil
}

// size is the number of nodes to simulate.
func (o *simulateOptions) size(cmd *cobra.Command, read submissions.File) (int, error) {
	if read.Log == nil {
		return 0, exit.Usagef("--fleet is missing; %s says what its pods request, and --fleet what the nodes have", o.trace)
	}
	nodes, said := int64(o.nodes), cmd.Flags().Changed("nodes")
	from := "--nodes"
	for _, header := range []string{"MaxNodes", "MaxProcs"} {
		if !said {
			if nodes, said = read.Log.Number(header); said {
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
