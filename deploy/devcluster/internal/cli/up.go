package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
	"muster.dev/muster/deploy/devcluster/internal/instance"
	"muster.dev/muster/deploy/devcluster/internal/launch"
	"muster.dev/muster/deploy/devcluster/internal/process"
)

// upOptions are the flags of "up".
type upOptions struct {
	target
	fleet         string
	openbDir      string
	kubeconfigOut string
	listen        string
	hostname      string
	apply         []string
	without       []string
	parentPID     int
	withParent    bool
	exitOnStdin   bool
	detach        bool
	background    bool // background is how "up --detach" starts itself again.
	timeout       time.Duration
}

func upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start an instance and keep it until a signal, its parent's end, or 'down'",
		Long: `Start an instance. Progress goes to standard error. When the instance is ready,
one line of JSON on standard output has its name, kubeconfig, API server, state
directory, number of nodes and the seconds it took. The instance then runs until
SIGINT, SIGTERM or SIGHUP, and leaves nothing behind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.detach {
				return detach(cmd, os.Args[1:])
			}
			return up(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.fleet, "fleet", "laptop", "nodes of the cluster: a preset (see 'fleet presets') or a fleet file")
	flags.StringVar(&o.openbDir, "openb-dir", os.Getenv(fleet.OpenBDirEnv), "directory of the trace for the preset openb, default $"+fleet.OpenBDirEnv)
	flags.StringVar(&o.kubeconfigOut, "kubeconfig-out", "", "also write the administrator's kubeconfig to this file, for as long as the instance runs")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` of the API server; port 0 chooses a free one")
	flags.StringVar(&o.hostname, "hostname", "", "name under which others reach this machine: the API server's certificate has it, and --kubeconfig-out uses it")
	flags.StringArrayVar(&o.apply, "apply", nil, "apply the manifests of this file or directory before reporting readiness (may be repeated)")
	flags.StringSliceVar(&o.without, "without", nil, "leave out a component: kuberay, the operator; its definitions stay")
	flags.IntVar(&o.parentPID, "parent-pid", 0, "end when the process with this id ends")
	flags.BoolVar(&o.withParent, "with-parent", false, "end when the process that started this one ends")
	flags.BoolVar(&o.exitOnStdin, "exit-on-stdin-close", false, "end when standard input is closed, as by the end of the process that holds its other end")
	flags.BoolVar(&o.detach, "detach", false, "return when the instance is ready and leave it running in the background")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "give up if the instance is not ready by then")
	flags.BoolVar(&o.background, "background", false, "")
	_ = flags.MarkHidden("background")
	cmd.MarkFlagsMutuallyExclusive("detach", "exit-on-stdin-close")
	cmd.MarkFlagsMutuallyExclusive("detach", "with-parent")
	return cmd
}

// up runs an instance until ctx is done or a component fails.
func up(ctx context.Context, o upOptions, out, progress io.Writer) (err error) {
	for _, name := range o.without {
		if name != launch.RayOperator {
			return fmt.Errorf("--without: %q cannot be left out; want %s", name, launch.RayOperator)
		}
	}
	started := time.Now()
	report := func(format string, args ...any) {
		fmt.Fprintf(progress, "devcluster: %5.1fs %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
	}
	machines, err := fleet.Load(o.fleet, o.openbDir)
	if err != nil {
		return err
	}
	ctx, err = o.bind(ctx)
	if err != nil {
		return err
	}
	lock, dir, err := o.claim(report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Remove()) }()

	state := instance.State{
		Name: dir.Name, PID: os.Getpid(), StartedAt: started, Kubeconfig: dir.AdminKubeconfig(),
	}
	if err := lock.Save(state); err != nil {
		return err
	}
	nodes := machines.Nodes()
	cluster, err := o.start(ctx, dir, nodes, lock, &state, report)
	defer cluster.Stop()
	if err != nil {
		if ctx.Err() != nil {
			report("stopping while starting: %v", context.Cause(ctx))
			return nil
		}
		return fmt.Errorf("starting instance %q: %w", dir.Name, err)
	}
	kubeconfig, err := o.writeKubeconfig(dir, cluster)
	if err != nil {
		return err
	}
	defer launch.RemoveKubeconfig(o.kubeconfigOut, kubeconfig)

	state.APIServer, state.Nodes, state.ReadySeconds = cluster.APIServer, len(nodes), seconds(time.Since(started))
	if err := o.publish(out, dir, lock, state, report); err != nil {
		return err
	}
	return o.supervise(ctx, cluster, lock, &state, report)
}

// start starts the components and notes each in the state, until all are ready or the time
// of --timeout has passed.
func (o upOptions) start(ctx context.Context, dir instance.Dir, nodes []*corev1.Node, lock *instance.Lock, state *instance.State, report func(format string, args ...any)) (*launch.Cluster, error) {
	starting, cancel := context.WithTimeoutCause(ctx, o.timeout,
		fmt.Errorf("not ready within %s (--timeout)", o.timeout))
	defer cancel()
	return launch.Start(starting, launch.Config{
		Dir: dir, Nodes: nodes, Manifests: o.apply, Progress: report, Listen: o.listen, Hostname: o.hostname, Without: o.without,
		Started: func(c *process.Component) {
			state.Put(instance.Component{Name: c.Name, PID: c.PID, Log: c.LogFile})
			if err := lock.Save(*state); err != nil {
				report("%v", err) // "status" will show less.
			}
		},
	})
}

// publish stores the state of an instance that is ready and prints where it is. In the
// background the instance then leaves its terminal.
func (o upOptions) publish(out io.Writer, dir instance.Dir, lock *instance.Lock, state instance.State, report func(format string, args ...any)) error {
	if err := lock.Save(state); err != nil {
		return err
	}
	report("instance %q is ready with %d nodes; state and logs in %s", dir.Name, state.Nodes, dir.Path)
	if err := announce(out, dir, state); err != nil {
		return err
	}
	if o.background {
		return leaveTerminal(dir.Log("supervisor"))
	}
	return nil
}

// supervise waits until ctx is done or a component fails. Meanwhile it restores etcd whenever
// it is asked to. Components that start then are noted in the same state.
func (o upOptions) supervise(ctx context.Context, cluster *launch.Cluster, lock *instance.Lock, state *instance.State, report func(format string, args ...any)) error {
	restore := make(chan os.Signal, 1)
	signal.Notify(restore, instance.RestoreSignal)
	for {
		select {
		case <-ctx.Done():
			report("stopping: %v", context.Cause(ctx))
			return nil
		case err := <-cluster.Failed():
			return fmt.Errorf("instance %q: %w", state.Name, err)
		case <-restore:
		}
		restoring, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("etcd is not restored within %s (--timeout)", o.timeout))
		err := cluster.Restore(restoring)
		cancel()
		if err != nil {
			return fmt.Errorf("instance %q: %w", state.Name, err)
		}
		state.Restored++
		if err := lock.Save(*state); err != nil {
			return err
		}
		report("etcd is restored")
	}
}

// bind ties the context to the processes whose end ends the instance.
func (o upOptions) bind(ctx context.Context) (context.Context, error) {
	pid := o.parentPID
	if o.withParent {
		pid = os.Getppid()
	}
	if pid != 0 {
		bound, err := process.BindToProcess(ctx, pid)
		if err != nil {
			return nil, err
		}
		ctx = bound
	}
	if o.exitOnStdin {
		ctx = process.BindToStdin(ctx)
	}
	return ctx, nil
}

// claim makes the state directory, after clearing away those of killed
// instances.
func (o upOptions) claim(report func(string, ...any)) (*instance.Lock, instance.Dir, error) {
	dir, err := o.locate()
	if err != nil {
		return nil, dir, err
	}
	swept, err := instance.Sweep()
	if err != nil {
		report("%v", err) // It does not hinder this instance.
	}
	for _, name := range swept {
		report("removed what was left of the killed instance %q", name)
	}
	lock, err := dir.Claim()
	return lock, dir, err
}

// writeKubeconfig writes the copy for others, who reach the API server by the
// machine's name when it has one.
func (o upOptions) writeKubeconfig(dir instance.Dir, cluster *launch.Cluster) ([]byte, error) {
	if o.kubeconfigOut == "" {
		return nil, nil
	}
	data, err := os.ReadFile(dir.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	data = bytes.ReplaceAll(data, []byte(cluster.APIServer), []byte(cluster.PublicURL))
	if err := os.MkdirAll(filepath.Dir(o.kubeconfigOut), 0o700); err != nil {
		return nil, fmt.Errorf("--kubeconfig-out: %w", err)
	}
	return data, instance.WriteFile(o.kubeconfigOut, data)
}
