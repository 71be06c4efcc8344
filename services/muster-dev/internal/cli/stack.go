package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/service/logging"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/muster-dev/internal/localstack"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// databaseVariable stands for --database-url.
const databaseVariable = "MUSTER_DATABASE_URL"

// natsPort is where NATS' own tools look for a server.
const natsPort = 4222

// httpPort is where the HTTP API listens unless the user chooses.
const httpPort = 8080

// consolePort is where the console listens unless the user chooses.
const consolePort = 8081

// stackOptions are the flags of commands that start a stack.
type stackOptions struct {
	kubeconfig, nodeSelector string
	fleet, devcluster        string
	databaseURL              string
	dir, logLevel            string
}

func (o *stackOptions) addFlags(flags *pflag.FlagSet, fleet string) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of an existing cluster to use instead of a dev cluster (default: $KUBECONFIG)")
	flags.StringVar(&o.nodeSelector, "node-selector", "", "manage only the nodes with these `labels`")
	flags.StringVar(&o.fleet, "fleet", fleet, "nodes of the dev cluster: a `preset` or a fleet file")
	flags.StringVar(&o.devcluster, "devcluster", "", "the dev cluster's `binary` (default: $"+devcluster.EnvBinary+", beside this program, or in PATH)")
	flags.StringVar(&o.databaseURL, "database-url", "", "`URL` of a Postgres database to use instead of a throwaway one (default: $"+databaseVariable+")")
	flags.StringVar(&o.dir, "dir", "", "`directory` for the temporary directory of the stack")
	flags.StringVar(&o.logLevel, "log-level", "warn", "the log `level` of the services: debug, info, warn or error")
}

// resolve fills in what the environment has.
func (o *stackOptions) resolve() error {
	if o.kubeconfig == "" {
		o.kubeconfig = os.Getenv("KUBECONFIG")
	}
	if o.databaseURL == "" {
		o.databaseURL = os.Getenv(databaseVariable)
	}
	if o.kubeconfig == "" {
		if o.nodeSelector != "" {
			return exit.Usagef("--node-selector %q selects nodes of an existing cluster; want --kubeconfig too", o.nodeSelector)
		}
		if _, err := devcluster.Find(o.devcluster); err != nil {
			return exit.Usagef("%w; or use an existing cluster with --kubeconfig", err)
		}
		return nil
	}
	if strings.ContainsRune(o.kubeconfig, os.PathListSeparator) {
		return exit.Usagef("kubeconfig %q is a list of files; want one file", o.kubeconfig)
	}
	absolute, err := filepath.Abs(o.kubeconfig)
	if err != nil {
		return exit.Usagef("kubeconfig %q: %w", o.kubeconfig, err)
	}
	if _, err := os.Stat(absolute); err != nil {
		return exit.Usagef("kubeconfig: %w", err)
	}
	o.kubeconfig = absolute
	return nil
}

// options are those of the stack.
func (o *stackOptions) options(cmd *cobra.Command, queues []queuemanager.Queue) (localstack.Options, error) {
	logger, err := logging.New(o.logLevel, "console")
	if err != nil {
		return localstack.Options{}, exit.Usagef("%w", err)
	}
	out := program.Lines(cmd.OutOrStdout())
	var clusterOutput io.Writer
	if o.logLevel == "debug" || o.logLevel == "info" {
		clusterOutput = cmd.ErrOrStderr()
	}
	return localstack.Options{
		Kubeconfig: o.kubeconfig, NodeSelector: o.nodeSelector, Fleet: o.fleet, Devcluster: o.devcluster,
		DatabaseURL: o.databaseURL, Dir: o.dir, Queues: queues, Logger: logger, NATSPort: -1, ClusterOutput: clusterOutput,
		Progress: func(format string, args ...any) {
			fmt.Fprintf(out, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
		},
	}, nil
}

// freeOrAny returns the port when it is free, and otherwise -1 for any.
func freeOrAny(port int) int {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return -1
	}
	_ = listener.Close()
	return port
}

// inWords returns which cluster it is.
func (o *stackOptions) inWords() string {
	if o.kubeconfig != "" {
		return "yours, of " + o.kubeconfig
	}
	return fmt.Sprintf("dev cluster with fleet %q", o.fleet)
}

// self is how the user called this program, and client is how to call the client
// that was built beside it.
func self() string { return os.Args[0] }

func client() string { return strings.TrimSuffix(self(), "-dev") }

// errInterrupted is the user's wish to end a command that has not come to its
// end.
var errInterrupted = errors.New("interrupted")
