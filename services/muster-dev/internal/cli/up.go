package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/localaddress"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/muster-dev/internal/localstack"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// upOptions are the flags of "up".
type upOptions struct {
	stackOptions
	queues      string
	natsPort    int
	httpPort    int
	consolePort int
}

func upCommand() *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of Muster in one process on a laptop",
		Long: `Run all of Muster in one process: a NATS server, Postgres, a dev cluster (a real
Kubernetes control plane with simulated nodes and the KubeRay operator), and the
four services, with the console. The client, muster, of the same user finds it without flags.
Ctrl-C ends it and removes its data.

With --kubeconfig it uses an existing cluster, in which it installs Muster's
namespace, service accounts and rights; those stay.`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags(), "laptop")
	cmd.Flags().StringVar(&o.queues, "queues", "", "YAML `file` with the queues (default: the queue \"default\" for the namespace \"default\")")
	cmd.Flags().IntVar(&o.natsPort, "nats-port", 0, fmt.Sprintf("`port` of NATS (default: %d, or a free one when that is taken)", natsPort))
	cmd.Flags().IntVar(&o.httpPort, "http-port", 0, fmt.Sprintf("`port` of the HTTP API (default: %d, or a free one when that is taken)", httpPort))
	cmd.Flags().IntVar(&o.consolePort, "console-port", 0, fmt.Sprintf("`port` of the console (default: %d, or a free one when that is taken)", consolePort))
	return cmd
}

func (o *upOptions) run(cmd *cobra.Command) (err error) {
	file, notes := queuesfile.File{Queues: queuemanager.DefaultQueues()}, []string(nil)
	if o.queues != "" { // before anything is started
		if file, notes, err = queuemanager.ReadQueues(o.queues); err != nil {
			return exit.Usagef("%w", err)
		}
	}
	if err := o.resolve(); err != nil {
		return err
	}
	options, err := o.options(cmd, file.Queues)
	if err != nil {
		return err
	}
	options.Policy = file.Config
	for _, note := range notes {
		options.Progress("%s: %s", o.queues, note)
	}
	if options.NATSPort = o.natsPort; o.natsPort == 0 {
		options.NATSPort = freeOrAny(natsPort)
	}
	if options.HTTPPort = o.httpPort; o.httpPort == 0 {
		options.HTTPPort = freeOrAny(httpPort)
	}
	if options.ConsolePort = o.consolePort; o.consolePort == 0 {
		options.ConsolePort = freeOrAny(consolePort)
	}
	notePath, err := localaddress.File()
	if err != nil {
		return err
	}
	note, err := localaddress.Reserve(notePath)
	if err != nil {
		return err
	}
	defer note.Remove()
	return o.serve(cmd, options, note)
}

// serve runs the stack until the user has enough of it.
func (o *upOptions) serve(cmd *cobra.Command, options localstack.Options, note *localaddress.Note) error {
	ctx, started := cmd.Context(), time.Now()
	stack, err := localstack.Start(ctx, options)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	defer options.Progress("stopped; nothing is left")
	defer stack.Stop()
	err = note.Write(localaddress.Stack{
		NATSURL: stack.NATSURL, HTTPURL: stack.HTTPURL, TokenFile: stack.TokenFile, Kubeconfig: stack.Kubeconfig, Cluster: o.inWords(), PID: os.Getpid(), Started: started,
	})
	if err != nil {
		return err
	}
	options.Progress("Muster is ready (%.1f s)", time.Since(started).Seconds())
	fmt.Fprint(cmd.OutOrStdout(), o.welcome(stack, options))
	select {
	case <-ctx.Done():
		options.Progress("stopping")
		return nil
	case err := <-stack.Failed():
		return err
	}
}

func (o *upOptions) welcome(stack *localstack.Stack, options localstack.Options) string {
	var names []string
	for _, queue := range options.Queues {
		names = append(names, fmt.Sprintf("%s (namespaces: %s)", queue.Name, strings.Join(queue.Namespaces, ", ")))
	}
	return fmt.Sprintf(`
  cluster     %[2]s
  kubeconfig  %[3]s
  NATS        %[4]s
  HTTP        export MUSTER_SERVER=%[6]s MUSTER_TOKEN=$(cat %[7]s)
  console     %[8]s; log in with the token in %[7]s
  queues      %[5]s

  submit      %[1]s submit -f FILE --wait=running
  look        %[1]s get workloads|queues|nodes, %[1]s describe workload NAME
  follow      %[1]s events --follow
  Kubernetes  kubectl --kubeconfig %[3]s get rayclusters,pods

Ctrl-C ends all of it.
`, client(), o.inWords(), stack.Kubeconfig, stack.NATSURL, strings.Join(names, "; "), stack.HTTPURL, stack.TokenFile, stack.ConsoleURL)
}

// interruptedOr returns err, or that the user ended the command.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return err
}
