package cli

import (
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// Run runs one command line of muster.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return runAs(ctx, command, args, in, out, errOut)
}

func runAs(ctx context.Context, root func(*server) *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	refused := func(err error) {
		end(fmt.Errorf("%w; a tenant of a queue may submit to it, under their own name, wait for their workloads, and read events with `muster events --new --queue QUEUE`; "+
			"lists, explanations, cancelling and the past need an operator's rights", err))
	}
	return program.Run(ctx, root(&server{refused: refused}), args, in, out, errOut)
}

// Command returns the command "muster" with all its subcommands.
func Command() *cobra.Command { return command(&server{}) }

func command(server *server) *cobra.Command {
	root := program.Root(&cobra.Command{
		Use:   "muster",
		Short: "Admit Ray workloads to GPU clusters, all or nothing",
		Long: `Muster admits Ray workloads to GPU clusters all or nothing: a workload waits in a
queue until every pod of it has a place, and only then starts.

muster submits, shows, follows and cancels workloads over NATS. muster-dev runs all
of Muster on a laptop, or installs what Muster needs into a cluster.

muster finds NATS by --nats-url, MUSTER_NATS_URL, or the running "muster-dev up". With
--server or MUSTER_SERVER it uses the HTTP API instead, as the caller that the token in
MUSTER_TOKEN or the client certificate identifies.

` + exit.Help,
	})
	root.Annotations = program.Hint("want `muster get workloads`, `muster get queues` or `muster get nodes`", "list", "ls")
	maps.Copy(root.Annotations, program.Hint("`muster get workloads NAME --watch` follows a workload, and `muster submit --wait` waits for one", "wait", "watch", "follow"))
	maps.Copy(root.Annotations, program.Hint("`muster describe workload NAME` prints the kubectl commands for its logs", "log", "logs"))
	maps.Copy(root.Annotations, program.Hint("`muster describe workload NAME` prints the kubectl commands for its dashboard and for jobs on it", "forward", "port-forward", "dashboard"))
	server.addFlags(root)
	server.addWebFlags(root)
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"workloads", "Workloads:", []*cobra.Command{
			submitCommand(server), getCommand(server), describeCommand(server), explainCommand(server), etaCommand(server), eventsCommand(server),
			cancelCommand(server), requeueCommand(server), checkpointCommand(server), priorityCommand(server), moveCommand(server), releaseCommand(server),
		}},
		{"queues", "Queues and clusters:", []*cobra.Command{
			applyCommand(server), deleteCommand(server), holdCommand(server), resumeCommand(server), clusterCommand(server),
			reserveCommand(server), unreserveCommand(server),
		}},
		{"offline", "Without a server:", program.WithoutConnection(predictCommand(), scenarioCommand(), simulateCommand(), verifyCommand())},
		{"operation", "Operation:", []*cobra.Command{statusCommand(server), usageCommand(server), whatifCommand(server), program.WithoutConnection(healthCommand())[0], program.WithoutConnection(replayCommand())[0]}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(program.WithoutConnection(program.Version())...)
	for _, moved := range [][2]string{{"dev", "up"}, {"demo", "demo"}, {"install", "install"}} {
		root.AddCommand(movedCommand(moved[0], moved[1]))
	}
	completeFlags(server, root)
	return root
}

// movedCommand returns where a command is that the client had once.
func movedCommand(name, successor string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return exit.Usagef("this command is in muster-dev: run `muster-dev %s`", successor)
		},
	}
}
