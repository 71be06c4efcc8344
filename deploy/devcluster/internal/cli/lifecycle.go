package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/deploy/devcluster/internal/instance"
	"muster.dev/muster/deploy/devcluster/internal/process"
)

// stopPatience is how long an instance may take to obey.
const stopPatience = 15 * time.Second

func downCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a running instance and remove what it has on disk",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := t.locate()
			if err != nil {
				return err
			}
			return dir.Stop(cmd.Context(), stopPatience)
		},
	}
	t.addFlags(cmd)
	return cmd
}

// statusReport is what "status" prints.
type statusReport struct {
	instance.State
	Dir        string            `json:"dir"`
	Ready      bool              `json:"ready"`
	ReadyNodes int               `json:"readyNodes"`
	Fault      string            `json:"fault,omitempty"`
	Processes  []componentReport `json:"components"`
}

type componentReport struct {
	instance.Component
	Running   bool  `json:"running"`
	MemoryMiB int64 `json:"memoryMiB"`
}

func statusCommand() *cobra.Command {
	var (
		t      target
		output string
		all    bool
		check  bool
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of an instance",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: must be json or left out", output)
			}
			dirs, err := t.dirs(all)
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				report, err := status(cmd.Context(), dir)
				if err != nil {
					return err
				}
				if output == "json" {
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
				} else {
					err = report.print(cmd.OutOrStdout())
				}
				if err != nil {
					return fmt.Errorf("printing the status: %w", err)
				}
				if check && !report.Ready {
					return fmt.Errorf("instance %q is not ready", dir.Name)
				}
			}
			return nil
		},
	}
	t.addFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "format: json, or text when left out")
	cmd.Flags().BoolVar(&check, "check", false, "fail when an instance is not ready, for health checks")
	cmd.Flags().BoolVar(&all, "all", false, "print all instances in the default directory")
	return cmd
}

func (t *target) dirs(all bool) ([]instance.Dir, error) {
	if all {
		return instance.List()
	}
	dir, err := t.locate()
	return []instance.Dir{dir}, err
}

func status(ctx context.Context, dir instance.Dir) (statusReport, error) {
	state, err := dir.Load()
	if err != nil {
		return statusReport{}, err
	}
	report := statusReport{State: state, Dir: dir.Path, Ready: state.ReadySeconds > 0}
	for _, c := range state.Components {
		memory, err := process.MemoryMiB(c.PID)
		report.Processes = append(report.Processes, componentReport{Component: c, Running: err == nil, MemoryMiB: memory})
		if err != nil {
			report.Ready = false
			report.Fault = fmt.Sprintf("component %s has ended; the end of %s:\n%s", c.Name, c.Log, process.Tail(c.Log, 15))
		}
	}
	client, err := clientFor(dir)
	if err != nil {
		report.Ready, report.Fault = false, err.Error()
		return report, nil
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		report.Ready, report.Fault = false, fmt.Sprintf("listing nodes: %v", err)
		return report, nil
	}
	report.Nodes = len(nodes.Items)
	for i := range nodes.Items {
		if isReady(&nodes.Items[i]) {
			report.ReadyNodes++
		}
	}
	return report, nil
}

func (r statusReport) print(out io.Writer) error {
	state := "starting"
	if r.Ready {
		state = "ready"
	}
	if r.Fault != "" {
		state = "faulty: " + r.Fault
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "instance\t%s\nstate\t%s\nAPI server\t%s\nkubeconfig\t%s\ndirectory\t%s\n",
		r.Name, state, r.APIServer, r.Kubeconfig, r.Dir)
	fmt.Fprintf(w, "nodes\t%d, %d of them Ready\nup since\t%s (ready after %.1fs)\n",
		r.Nodes, r.ReadyNodes, r.StartedAt.Format(time.RFC3339), r.ReadySeconds)
	for _, c := range r.Processes {
		fmt.Fprintf(w, "%s\tpid %d, %d MiB, log %s\n", c.Name, c.PID, c.MemoryMiB, c.Log)
	}
	return w.Flush()
}
