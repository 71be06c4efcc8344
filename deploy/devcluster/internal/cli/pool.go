package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/deploy/devcluster/internal/autoscaler"
)

func poolCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Node pools that a stand-in for an autoscaler fills for ProvisioningRequests",
	}
	t.addFlags(cmd)
	cmd.AddCommand(poolAddCommand(&t), poolSetCommand(&t), poolListCommand(&t), poolRemoveCommand(&t), poolRevokeCommand(&t))
	return cmd
}

// poolOptions are the flags that a pool can be changed by.
type poolOptions struct {
	min, max, stock, fail, missing int
	delay, idle, booking           time.Duration
	pending                        bool
	classes                        []string
}

func (o *poolOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.min, "min", 0, "nodes that the pool has without any request")
	flags.IntVar(&o.max, "max", 0, "nodes that it has at most")
	flags.IntVar(&o.stock, "stock", -1, "nodes that the provider has; -1 for as many as are wanted")
	flags.IntVar(&o.fail, "fail", 0, "how many of the next requests fail")
	flags.IntVar(&o.missing, "missing", 0, "how many nodes of each request never come, although it is Provisioned")
	flags.BoolVar(&o.pending, "pending", false, "add nodes for pods that the scheduler finds no node for, too")
	flags.DurationVar(&o.delay, "delay", 0, "how long nodes take to come")
	flags.DurationVar(&o.idle, "idle", 0, "how long an unused node is kept; 0 keeps it")
	flags.DurationVar(&o.booking, "booking", 0, "how long nodes are kept for their request, which is BookingExpired then; 0 keeps them")
	flags.StringSliceVar(&o.classes, "class", nil, "provisioningClassName that the pool answers (may be repeated; default: queued-provisioning.gke.io, best-effort-atomic-scale-up.autoscaling.x-k8s.io and check-capacity.autoscaling.x-k8s.io)")
}

// apply writes the flags that were given into the pool.
func (o *poolOptions) apply(flags *pflag.FlagSet, pool *autoscaler.Pool) {
	for name, set := range map[string]func(){
		"min": func() { pool.Min = o.min }, "max": func() { pool.Max = o.max },
		"stock": func() { pool.Stock = o.stock }, "fail": func() { pool.Fail = o.fail },
		"missing": func() { pool.Missing = o.missing }, "pending": func() { pool.Pending = o.pending },
		"delay":   func() { pool.Delay = metav1.Duration{Duration: o.delay} },
		"idle":    func() { pool.Idle = metav1.Duration{Duration: o.idle} },
		"booking": func() { pool.Booking = metav1.Duration{Duration: o.booking} },
		"class":   func() { pool.Classes = o.classes },
	} {
		if flags.Changed(name) {
			set()
		}
	}
}

func poolAddCommand(t *target) *cobra.Command {
	var template addOptions
	var o poolOptions
	cmd := &cobra.Command{
		Use:     "add NAME",
		Short:   "Add a pool, with a group of a fleet or of your own making as its nodes",
		Example: `  devcluster pool add l4 --max 10 --delay 2s --pattern 'l4-{000}' --resource cpu=16,memory=64Gi --resource nvidia.com/gpu=1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			group, err := template.build()
			if err != nil {
				return err
			}
			pool := autoscaler.Pool{Name: args[0], Template: group, Stock: -1}
			o.apply(cmd.Flags(), &pool)
			return withPools(t, func(client kubernetes.Interface) error { return autoscaler.Add(cmd.Context(), client, pool) })
		},
	}
	template.addFlags(cmd)
	o.addFlags(cmd.Flags())
	return cmd
}

func poolSetCommand(t *target) *cobra.Command {
	var o poolOptions
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a pool; what is not given stays",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPools(t, func(client kubernetes.Interface) error {
				return autoscaler.Set(cmd.Context(), client, args[0], func(pool *autoscaler.Pool) { o.apply(cmd.Flags(), pool) })
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func poolListCommand(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the pools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withPools(t, func(client kubernetes.Interface) error {
				pools, err := autoscaler.Pools(cmd.Context(), client)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tMIN\tMAX\tSTOCK\tDELAY\tIDLE\tBOOKING\tFAIL\tMISSING\tPENDING")
				for _, p := range pools {
					fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%t\n", p.Name, p.Min, p.Max, p.Stock, p.Delay.Duration, p.Idle.Duration, p.Booking.Duration, p.Fail, p.Missing, p.Pending)
				}
				return w.Flush()
			})
		},
	}
}

func poolRemoveCommand(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a pool; its nodes stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPools(t, func(client kubernetes.Interface) error { return autoscaler.Remove(cmd.Context(), client, args[0]) })
		},
	}
}

func poolRevokeCommand(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAMESPACE/REQUEST", Short: "Remove the nodes of a request, which then has the condition CapacityRevoked", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, name, ok := strings.Cut(args[0], "/")
			if !ok {
				return fmt.Errorf("request %q: want NAMESPACE/NAME", args[0])
			}
			names, err := revoke(cmd.Context(), t, namespace, name)
			if err != nil {
				return err
			}
			return printNames(cmd, names)
		},
	}
}

func revoke(ctx context.Context, t *target, namespace, name string) ([]string, error) {
	dir, err := t.locate()
	if err != nil {
		return nil, err
	}
	config, err := adminConfig(dir)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	requests, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of requests: %w", err)
	}
	return autoscaler.Revoke(ctx, client, requests, namespace, name)
}

// withPools does something with the API server of the instance.
func withPools(t *target, do func(client kubernetes.Interface) error) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	return do(client)
}
