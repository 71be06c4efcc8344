package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/trial"
)

// whatifOptions are the flags of "whatif".
type whatifOptions struct {
	server       *server
	output       output.Format
	namespace    string
	nodes        map[string]int
	shapes       []string
	shapeLabels  map[string]string
	shapeCluster string
	drain        []string
	drainCluster string
	drainLabel   map[string]string
	pods         map[string]int
	requests     []string
	priorities   map[string]string
	moves        map[string]string
	file, queue  string
	submitter    string
	queues       string
	runTime      time.Duration

	otherRequests []otherRequests // that requests has
}

func whatifCommand(s *server) *cobra.Command {
	o := &whatifOptions{server: s}
	cmd := &cobra.Command{
		Use:   "whatif",
		Short: "Show what a change would do to running and waiting workloads",
		Long: `Simulate the live state with and without a change, and show the workloads for which
something differs: when they would start, and which would be evicted. The command
changes nothing. Several flags together are one change.

Times are estimates like those of "muster eta", at the median of the learned run times.`,
		Example: `  muster whatif --add-nodes gpu-7=4
  muster whatif --add-shape 4:cpu=96,memory=1Ti,nvidia.com/gpu=8 --shape-label pool=a100
  muster whatif --drain gpu-7 --drain gpu-8
  muster whatif --drain-label topology.example.org/rack=r7
  muster whatif --priority train=100
  muster whatif --pods train:workers=4
  muster whatif --requests train:workers:nvidia.com/gpu=4,cpu=48
  muster whatif --move train=research
  muster whatif -f big.yaml --queue research --run-time 6h
  muster whatif --queues new-queues.yaml`,
		Args: program.Args(0, 0, "no argument, but a change"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringToIntVar(&o.nodes, "add-nodes", nil, "add empty nodes like a present one: `NODE=COUNT`")
	flags.StringArrayVar(&o.shapes, "add-shape", nil, "add empty nodes with these amounts: `COUNT:RESOURCE=AMOUNT,...` (may be repeated)")
	flags.StringToStringVar(&o.shapeLabels, "shape-label", nil, "the nodes of --add-shape have this label: `LABEL=VALUE`")
	flags.StringVar(&o.shapeCluster, "shape-cluster", "", "the nodes of --add-shape are of this `cluster`; not needed where there is one only")
	flags.StringArrayVar(&o.drain, "drain", nil, "drain this `node` (may be repeated)")
	flags.StringVar(&o.drainCluster, "drain-cluster", "", "drain all nodes of this `cluster`; with --drain-label those of them that have the label")
	flags.StringToStringVar(&o.drainLabel, "drain-label", nil, "drain all nodes that have this label, such as those of a rack: `LABEL=VALUE`")
	flags.StringToIntVar(&o.pods, "pods", nil, "give a waiting workload other numbers of pods: `WORKLOAD:PODSET=COUNT`")
	flags.StringArrayVar(&o.requests, "requests", nil, "have each pod of a waiting workload request other amounts: `WORKLOAD:PODSET:RESOURCE=AMOUNT,...` (may be repeated)")
	flags.StringToStringVar(&o.priorities, "priority", nil, "give a waiting or running workload another priority: `WORKLOAD=NUMBER`")
	flags.StringToStringVar(&o.moves, "move", nil, "move a waiting workload to another queue: `WORKLOAD=QUEUE`")
	flags.StringVarP(&o.file, "filename", "f", "", "submit the Ray object in this `file`; - is standard input")
	flags.StringVarP(&o.queue, "queue", "q", "", "the `queue` to which -f is submitted; not needed where its label names one")
	flags.StringVar(&o.submitter, "submitter", "", "-f is submitted by this `submitter`, such as http/ann; for operators")
	flags.DurationVar(&o.runTime, "run-time", 0, "how long it runs, unless it declares that itself")
	flags.StringVar(&o.queues, "queues", "", "use this queues `file` instead of the present one")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of workloads whose names are ambiguous, and of -f where it names none")
	for _, name := range []string{"add-nodes", "priority", "move", "pods", "drain-label", "shape-label"} {
		flags.Lookup(name).DefValue = "" // not [], which the help would show
	}
	program.AddOutput(cmd, flags, &o.output)
	return cmd
}

func (o *whatifOptions) run(cmd *cobra.Command) error {
	if name := firstChanged(cmd, "shape-label", "shape-cluster"); name != "" && len(o.shapes) == 0 {
		return exit.Usagef("--%s without --add-shape: of which nodes?", name)
	}
	if len(o.nodes)+len(o.shapes)+len(o.drain)+len(o.drainLabel)+len(o.priorities)+len(o.moves)+len(o.pods)+len(o.requests) == 0 && o.drainCluster == "" && o.file == "" && o.queues == "" {
		return exit.Usagef("no change given; want one or more of --add-nodes, --add-shape, --drain, --drain-cluster, --drain-label, --priority, --move, --pods, --requests, -f and --queues")
	}
	if name := firstChanged(cmd, "queue", "submitter", "run-time"); name != "" && o.file == "" {
		return exit.Usagef("--%s without -f: for which manifest?", name)
	}
	request := query.WhatIfRequest{}
	for _, text := range o.shapes {
		added, err := o.shaped(text)
		if err != nil {
			return err
		}
		request.AddNodes = append(request.AddNodes, added)
	}
	for _, text := range o.requests {
		other, err := requested(text)
		if err != nil {
			return err
		}
		o.otherRequests = append(o.otherRequests, other)
	}
	if o.queues != "" {
		content, err := os.ReadFile(o.queues)
		if err != nil {
			return exit.Usagef("%w", err)
		}
		request.QueuesFile = string(content)
	}
	if o.file != "" {
		content, err := readFile(o.file, cmd.InOrStdin())
		if err != nil {
			return exit.Usagef("%w", err)
		}
		if request.Submit, err = trial.Read(content, trial.Options{Queue: o.queue, Namespace: o.namespace, Submitter: o.submitter, RunTime: o.runTime}); err != nil {
			return exit.Usagef("-f %s: %w", o.file, err)
		}
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		if err := o.resolve(ctx, client, &request); err != nil {
			return err
		}
		answer, err := client.WhatIf(ctx, request)
		if err != nil {
			return err
		}
		if o.output.Data() || len(answer.Workloads) > 0 {
			err = output.Print(cmd.OutOrStdout(), o.output, answer, func() output.Table { return output.WhatIf(answer, time.Now()) })
		}
		if err == nil && !o.output.Data() {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), output.WhatIfSame(answer))
		}
		return err
	})
}

// shaped reads COUNT:RESOURCE=AMOUNT,...
func (o *whatifOptions) shaped(text string) (added query.NodesLike, err error) {
	number, amounts, has := strings.Cut(text, ":")
	added.Count, err = strconv.Atoi(number)
	if !has || err != nil {
		return added, exit.Usagef("--add-shape %s: want COUNT:RESOURCE=AMOUNT,..., such as 4:cpu=96,memory=1Ti,nvidia.com/gpu=8", text)
	}
	added.Shape = &query.NodeShape{Cluster: o.shapeCluster, Labels: o.shapeLabels}
	if added.Shape.Allocatable, err = query.ParseAmounts(amounts); err != nil {
		return added, exit.Usagef("--add-shape %s: %w", text, err)
	}
	return added, nil
}
