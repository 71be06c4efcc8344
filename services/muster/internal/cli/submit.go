package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/submission"
)

// submitOptions are the flags of "submit".
type submitOptions struct {
	server           *server
	files            []string
	queue, namespace string
	priority         int32
	priorityClass    string
	id, source, as   string
	wait             string
	timeout          time.Duration
	quiet, dryRun    bool
}

func submitCommand(s *server) *cobra.Command {
	o := &submitOptions{server: s}
	cmd := &cobra.Command{
		Use:   "submit -f FILE",
		Short: "Submit RayCluster, RayJob, RayService and AppWrapper manifests to a queue",
		Long: `Submit RayCluster, RayJob, RayService and AppWrapper manifests, in YAML or JSON, to
a queue. A file may hold several documents; each is a workload of its own. An
AppWrapper, of MCAD (v1beta1) or CodeFlare (v1beta2), is one workload with all that
it wraps.

By default the command waits until Muster has stored the workload. If Muster
rejects it, the command prints the reason and exits with code 4. With --wait=running
or finished the command follows the workload further.

--source and --id together identify a submission, for as long as Muster keeps the
workload: submitting the same pair again creates no second workload.`,
		Example: `  muster submit -f glue.yaml
  muster submit -f glue.yaml --dry-run
  muster submit -f glue.yaml --queue research --wait=running --timeout 10m
  generate | muster submit -f - --id nightly-2026-11-21 --wait=finished`,
		Args: o.args,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` of manifests; - is standard input (may be repeated)")
	program.FormerFlag(flags, "file", "filename")
	flags.StringVarP(&o.queue, "queue", "q", "default", "the `queue` to wait in; without this flag the label "+kube.QueueNameLabel+" of the manifest decides")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` to run in (default: the manifest's, else the queue's)")
	flags.Int32Var(&o.priority, "priority", 0, "the priority, a `number`; higher ones come first in the queue")
	flags.StringVar(&o.priorityClass, "priority-class", "", "the `class` that gives the priority (default: the class that a label of the manifest names)")
	flags.StringVar(&o.id, "id", "", "the `id` of the submission (default: a generated one)")
	flags.StringVar(&o.source, "source", submission.DefaultSource, "the `name` of the submitter; unique together with the id")
	flags.StringVar(&o.as, "as", "", "the `user` of NATS that submits, for a queue that lists submitters; NATS lets users name only themselves")
	flags.StringVar(&o.wait, "wait", string(follow.Queued), "wait until the workload is submitted, queued, admitted, running or finished; --wait alone: running")
	flags.Lookup("wait").NoOptDefVal = string(follow.Running)
	flags.DurationVar(&o.timeout, "timeout", 0, "how long --wait waits (default: 30s for queued, no limit for the others)")
	flags.BoolVar(&o.quiet, "quiet", false, "print only the ids of the workloads")
	flags.BoolVar(&o.dryRun, "dry-run", false, "check the manifests and that the queue is there, but submit nothing; `muster whatif -f FILE` estimates the start")
	program.CompleteFlag(cmd, "wait", program.Fixed(follow.Goals()))
	cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 || !cmd.Flags().Changed("wait") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return program.Fixed(follow.Goals())(cmd, given, begun)
	}
	return cmd
}

// args takes the goal of `--wait GOAL`, which is an argument because --wait needs no value.
func (o *submitOptions) args(cmd *cobra.Command, given []string) error {
	if len(given) == 1 && cmd.Flags().Changed("wait") && o.wait == string(follow.Running) {
		if _, err := follow.ParseGoal(given[0]); err != nil {
			return exit.Usagef("%w, as --wait=GOAL; manifests are given as -f FILE", err)
		}
		o.wait = given[0]
		return nil
	}
	return program.Args(0, 0, "no argument, but -f FILE")(cmd, given)
}

// sent is a submission that is followed.
type sent struct {
	submission.Submission
	queue string
	life  *follow.Life
}

func (o *submitOptions) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("priority") && o.priorityClass != "" {
		return exit.Usagef("--priority %d and --priority-class %q are both set; want one of them", o.priority, o.priorityClass)
	}
	goal, err := o.check()
	if err != nil {
		return err
	}
	submissions, err := o.read(cmd.InOrStdin(), cmd.Flags().Changed("queue"))
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.try(cmd, submissions)
	}
	ctx := cmd.Context()
	if web, err := o.server.overHTTP(); err != nil {
		return err
	} else if web != nil {
		return o.overWeb(cmd, web, goal, submissions)
	}
	b, err := o.server.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	following, stop := context.WithCancel(ctx)
	defer stop()
	for i := range submissions {
		s := &submissions[i]
		if goal != follow.Submitted {
			if s.life, err = follow.Start(following, b, s.queue, s.Workload); err != nil {
				return err
			}
		}
		if err := s.Send(ctx, b, s.queue, o.as); err != nil {
			if goal != follow.Submitted {
				for j := range submissions[:i] { // there is no wait for them now
					o.print(cmd.OutOrStdout(), &submissions[j])
				}
			}
			return err
		}
		if goal == follow.Submitted { // the others say so when Muster has not rejected it
			o.print(cmd.OutOrStdout(), s)
		}
	}
	if goal == follow.Submitted {
		return nil
	}
	return o.await(cmd, b, goal, submissions)
}

func (o *submitOptions) print(out io.Writer, s *sent) {
	if o.quiet {
		fmt.Fprintln(out, s.Workload)
		return
	}
	fmt.Fprintf(out, "%s submitted (workload %s)\n", s.Document, s.Workload)
}

func (o *submitOptions) check() (follow.Goal, error) {
	goal, err := follow.ParseGoal(o.wait)
	switch {
	case err != nil:
		return "", exit.Usagef("%w", err)
	case len(o.files) == 0:
		return "", exit.Usagef("no manifest given; want -f FILE, or -f - for standard input")
	case !workload.ValidName(o.queue):
		return "", exit.Usagef("queue %q: want a name of at most 63 lower-case letters, digits and dashes", o.queue)
	case o.as != "" && !workload.ValidName(o.as):
		return "", exit.Usagef("user %q: want a name of at most 63 lower-case letters, digits and dashes", o.as)
	case o.source == "":
		return "", exit.Usagef("--source is empty; want the name of the submitter")
	case o.timeout < 0:
		return "", exit.Usagef("--timeout %s: want a positive duration", o.timeout)
	}
	if o.timeout == 0 && goal == follow.Queued {
		o.timeout = 30 * time.Second
	}
	return goal, nil
}

// queueOf is the queue of a document: that of the flag, which the document's label may not
// contradict, or else that of the label. A label that names no queue is left to be refused.
func (o *submitOptions) queueOf(d manifest.Document, named bool) string {
	if named || !workload.ValidName(d.Queue) {
		return o.queue
	}
	return d.Queue
}

// read makes a submission of each document; named means that the flag names the queue.
func (o *submitOptions) read(in io.Reader, named bool) ([]sent, error) {
	var submissions []sent
	for _, file := range o.files {
		content, err := readFile(file, in)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		documents := manifest.Split(content)
		if len(documents) == 0 {
			return nil, exit.Usagef("there is no manifest in %q", file)
		}
		for _, document := range documents {
			document, err := document.InNamespace(o.namespace)
			if err != nil {
				return nil, exit.Usagef("%w", err)
			}
			s, err := submission.New(document, submission.Options{ID: o.id, Source: o.source, Priority: o.priority, PriorityClass: o.priorityClass, User: o.as}, time.Now())
			if err != nil {
				return nil, err
			}
			submissions = append(submissions, sent{Submission: s, queue: o.queueOf(document, named)})
		}
	}
	if o.id != "" && len(submissions) > 1 {
		return nil, exit.Usagef("--id %q names one submission, but the files have %d manifests; submit each by itself", o.id, len(submissions))
	}
	return submissions, nil
}

func readFile(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return content, nil
	}
	return os.ReadFile(name)
}

// reference names a workload as kubectl does.
func reference(w workload.Workload) string {
	return output.Cell(strings.ToLower(w.Kind) + "/" + w.Name)
}
