package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/muster-dev/internal/demo"
	"muster.dev/muster/services/muster-dev/internal/localstack"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// Where the demo runs: in an existing cluster in a namespace of its own.
const (
	demoQueue     = "default"
	demoNamespace = "default"
	usersQueue    = "muster-demo"
)

// demoOptions are the flags of "demo".
type demoOptions struct {
	stackOptions
	image        string
	keep         bool
	provisioning bool
	clusters     bool
}

func demoCommand() *cobra.Command {
	o := &demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo of gang admission on real parts, and check each step",
		Long: `Start all of Muster as "muster-dev up" does and show gang admission: a gang that
fits starts whole; the same gang again waits, with an exact reason and without a
trace in Kubernetes; a gang whose GPUs are free in sum but not on one node waits
too; cancelling the first starts the second. Each step is checked in Kubernetes. The
exit code is not zero when anything differs.

With --provisioning the demo is another: a job waits for a node that does not exist,
a request asks the autoscaler for it, the job runs on it, and the node goes away
again. The dev cluster plays the autoscaler.

With --clusters two dev clusters run under one queue-manager: gangs fill the cheaper one and
overflow to the other; that one is cut off, leaves by force, and its gang starts again; it
comes back, and the first one is drained.

With --kubeconfig (or $KUBECONFIG) it runs in that cluster, in the namespace
` + usersQueue + `, with gangs sized by your nodes.`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags(), "p3")
	cmd.Flags().StringVar(&o.image, "image", "rayproject/ray:2.52.0", "Ray's `image`, in an existing cluster")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "keep everything running after the demo, until Ctrl-C")
	cmd.Flags().BoolVar(&o.provisioning, "provisioning", false, "show how a job gets nodes that do not exist yet")
	cmd.Flags().BoolVar(&o.clusters, "clusters", false, "show two clusters under one queue-manager")
	return cmd
}

func (o *demoOptions) run(cmd *cobra.Command) error {
	if err := o.resolve(); err != nil {
		return err
	}
	if o.provisioning && o.kubeconfig != "" {
		return exit.Usagef("--provisioning needs the node pools of a dev cluster, and $KUBECONFIG or --kubeconfig names %q", o.kubeconfig)
	}
	if o.clusters && (o.kubeconfig != "" || o.provisioning) {
		return exit.Usagef("--clusters starts two dev clusters; want neither --provisioning nor $KUBECONFIG or --kubeconfig, which names %q", o.kubeconfig)
	}
	run := demo.Run
	if o.clusters {
		run = demo.RunClusters
		if !cmd.Flags().Changed("fleet") {
			o.fleet = "laptop"
		}
	}
	if o.provisioning {
		run = demo.RunProvisioning
		if !cmd.Flags().Changed("fleet") {
			o.fleet = "autoscaled"
		}
	}
	queues, queue, namespace := queuemanager.DefaultQueues(), demoQueue, demoNamespace
	fitted := o.kubeconfig != ""
	if fitted {
		queue, namespace = usersQueue, usersQueue
		queues = []queuemanager.Queue{{Name: queue, Namespaces: []string{namespace}}}
	}
	options, err := o.options(cmd, queues)
	if err != nil {
		return err
	}
	options.FreshDatabase = true
	if o.clusters {
		options.ClusterSilence = demo.ClusterSilence
	}
	if o.keep {
		options.HTTPPort, options.ConsolePort = -1, -1
	}
	ctx, started := cmd.Context(), time.Now()
	options.Progress("the cluster is %s", o.inWords())
	stack, err := localstack.Start(ctx, options)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	defer stack.Stop()
	options.Progress("Muster is ready (%.1f s)", time.Since(started).Seconds())
	ready := time.Now()
	err = run(ctx, demo.Options{
		Stack: stack, Queue: queue, Namespace: namespace, Fitted: fitted, Image: o.image,
		Logger: options.Logger, Out: cmd.OutOrStdout(),
	})
	if err != nil {
		return interruptedOr(ctx, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "The demo took %.1f s.\n", time.Since(ready).Seconds())
	return o.lookAround(cmd, stack)
}

// lookAround prints how to go on, and waits while the user does.
func (o *demoOptions) lookAround(cmd *cobra.Command, stack *localstack.Stack) error {
	out := cmd.OutOrStdout()
	if !o.keep {
		fmt.Fprintf(out, `
Look around yourself:
  %[1]s up --fleet p3         the same stack, staying up until Ctrl-C, with the
                                console at http://127.0.0.1:%[3]d
  %[2]s submit -f FILE            and in another terminal: submit,
  %[2]s get workloads             list,
  %[2]s describe workload NAME    and see the places, the reason, the life
`, self(), client(), consolePort)
		return nil
	}
	fmt.Fprintf(out, `
All of it keeps running until Ctrl-C. Look around:
  export MUSTER_NATS_URL=%[2]s
  %[1]s get workloads
  %[1]s describe workload raycluster-glue-1
  kubectl --kubeconfig %[3]s get rayclusters,pods -A
and in a browser, with the token in %[5]s:
  %[4]s
`, client(), stack.NATSURL, stack.Kubeconfig, stack.ConsoleURL, stack.TokenFile)
	select {
	case <-cmd.Context().Done():
		return nil
	case err := <-stack.Failed():
		return err
	}
}
