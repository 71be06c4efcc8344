package cli

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/deploy/devcluster/internal/instance"
	"muster.dev/muster/deploy/devcluster/internal/launch"
)

// restorePoll is how often the instance is looked at while etcd is restored.
const restorePoll = 100 * time.Millisecond

func etcdCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "etcd", Short: "Save and restore the state of the API server"}
	t.addFlags(cmd)
	cmd.AddCommand(
		&cobra.Command{
			Use: "save", Short: "Save the state of the API server, in place of what was saved before", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return saveEtcd(&t) },
		},
		&cobra.Command{
			Use: "restore", Short: "Go back to what was saved, and start all components again", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return restoreEtcd(cmd.Context(), &t) },
		})
	return cmd
}

func saveEtcd(t *target) error {
	dir, err := t.locate()
	if err != nil {
		return err
	}
	state, err := dir.Load()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(state.Components, func(c instance.Component) bool { return c.Name == launch.Etcd })
	if at < 0 {
		return fmt.Errorf("instance %q has no etcd yet", dir.Name)
	}
	return launch.SaveEtcd(dir, state.Components[at].PID)
}

// restoreEtcd has the supervisor do it, and waits.
func restoreEtcd(ctx context.Context, t *target) error {
	dir, err := t.locate()
	if err != nil {
		return err
	}
	before, err := dir.Load()
	if err != nil {
		return err
	}
	if err := syscall.Kill(before.PID, instance.RestoreSignal); err != nil {
		return fmt.Errorf("asking process %d to restore etcd: %w", before.PID, err)
	}
	tick := time.NewTicker(restorePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, err := dir.Load()
		if err != nil {
			return fmt.Errorf("restoring etcd: %w", err)
		}
		if now.Restored > before.Restored {
			return nil
		}
	}
}
