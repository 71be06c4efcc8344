package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
	"muster.dev/muster/deploy/devcluster/internal/nodes"
)

func nodeCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Add, cordon, break, relabel and remove nodes of a running instance",
	}
	t.addFlags(cmd)
	leavePods := false
	remove := nodeAction(&t, "remove", "Delete nodes and the pods on them, as when their machines are gone",
		func(ctx context.Context, client kubernetes.Interface, names []string) error {
			return nodes.Remove(ctx, client, names, leavePods)
		})
	remove.Flags().BoolVar(&leavePods, "leave-pods", false, "leave the pods to the controller manager, which finds them within a minute")
	cmd.AddCommand(
		nodeAddCommand(&t),
		nodeLabelCommand(&t),
		remove,
		nodeAction(&t, "cordon", "Let no new pods come to nodes",
			func(ctx context.Context, client kubernetes.Interface, names []string) error {
				return nodes.SetUnschedulable(ctx, client, names, true)
			}),
		nodeAction(&t, "uncordon", "Undo cordon",
			func(ctx context.Context, client kubernetes.Interface, names []string) error {
				return nodes.SetUnschedulable(ctx, client, names, false)
			}),
		nodeAction(&t, "break", "Kill the kubelets of nodes: they become NotReady and their pods neither start nor end", nodes.Break),
		nodeAction(&t, "repair", "Undo break", nodes.Repair),
	)
	return cmd
}

// addSelection adds the flags that select nodes.
func addSelection(cmd *cobra.Command, s *nodes.Selection) {
	cmd.Flags().StringVarP(&s.Selector, "selector", "l", "", "labels of the nodes, as in kubectl")
	cmd.Flags().IntVar(&s.Count, "count", 0, "take at most this many nodes, in the order of their names (0: all)")
}

// selected finds the nodes that a command is about. Without names and labels it
// finds none: a slip must not break a whole fleet.
func selected(ctx context.Context, t *target, s nodes.Selection) (kubernetes.Interface, []string, error) {
	if len(s.Globs) == 0 && s.Selector == "" {
		return nil, nil, fmt.Errorf("name the nodes (NAME..., '*' for all) or their labels (--selector)")
	}
	client, err := t.client()
	if err != nil {
		return nil, nil, err
	}
	names, err := nodes.Select(ctx, client, s)
	return client, names, err
}

func nodeAction(t *target, verb, short string, do func(context.Context, kubernetes.Interface, []string) error) *cobra.Command {
	var s nodes.Selection
	cmd := &cobra.Command{
		Use:   verb + " [NAME|GLOB]...",
		Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Globs = args
			client, names, err := selected(cmd.Context(), t, s)
			if err != nil {
				return err
			}
			if err := do(cmd.Context(), client, names); err != nil {
				return err
			}
			return printNames(cmd, names)
		},
	}
	addSelection(cmd, &s)
	return cmd
}

func printNames(cmd *cobra.Command, names []string) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n"))
	return err
}

func nodeLabelCommand(t *target) *cobra.Command {
	var s nodes.Selection
	cmd := &cobra.Command{
		Use:     "label [NAME|GLOB]... KEY=VALUE|KEY-...",
		Short:   "Set and remove labels of nodes",
		Example: "  devcluster node label 'gpu-00*' topology.muster.dev/rack=r7 spot-",
		RunE: func(cmd *cobra.Command, args []string) error {
			set, unset := make(map[string]string), []string(nil)
			s.Globs = nil
			for _, arg := range args {
				if key, value, ok := strings.Cut(arg, "="); ok {
					set[key] = value
				} else if key, ok := strings.CutSuffix(arg, "-"); ok {
					unset = append(unset, key)
				} else {
					s.Globs = append(s.Globs, arg)
				}
			}
			if len(set)+len(unset) == 0 {
				return fmt.Errorf("name a label to set (KEY=VALUE) or to remove (KEY-)")
			}
			client, names, err := selected(cmd.Context(), t, s)
			if err != nil {
				return err
			}
			if err := nodes.Label(cmd.Context(), client, names, set, unset); err != nil {
				return err
			}
			return printNames(cmd, names)
		},
	}
	addSelection(cmd, &s)
	return cmd
}

// addOptions are the flags of "node add".
type addOptions struct {
	fleet, openbDir, group string
	pattern                string
	count                  int
	labels                 map[string]string
	resources              map[string]string
	taints                 []string
}

func nodeAddCommand(t *target) *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add nodes: more of a group of a fleet, or of your own making",
		Example: `  devcluster node add --fleet p3 --group p3-1gpu --count 3
  devcluster node add --pattern 'tpu-{00}' --count 4 --resource cpu=96 --resource google.com/tpu=4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			group, err := o.build()
			if err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			names, err := nodes.Add(cmd.Context(), client, group)
			if err != nil {
				return err
			}
			return printNames(cmd, names)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().IntVar(&o.count, "count", 1, "number of nodes")
	return cmd
}

// addFlags adds the flags that describe a node.
func (o *addOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.fleet, "fleet", "", "preset or fleet file with the group")
	flags.StringVar(&o.group, "group", "", "name of the group in the fleet, with or without its number")
	flags.StringVar(&o.openbDir, "openb-dir", os.Getenv(fleet.OpenBDirEnv), "directory of the trace for the preset openb")
	flags.StringVar(&o.pattern, "pattern", "", "pattern of the names, as 'gpu-{000}', instead of the group's; taken names are left out")
	flags.StringToStringVar(&o.labels, "label", nil, "KEY=VALUE to add to the labels (may be repeated)")
	flags.StringToStringVar(&o.resources, "resource", nil, "NAME=QUANTITY to add to what is allocatable (may be repeated)")
	flags.StringArrayVar(&o.taints, "taint", nil, "KEY=VALUE:EFFECT or KEY:EFFECT to add to the taints (may be repeated)")
	cmd.MarkFlagsRequiredTogether("fleet", "group")
}

// build makes the group that the flags describe.
func (o addOptions) build() (fleet.Group, error) {
	var group fleet.Group
	if o.fleet != "" {
		from, err := fleet.Load(o.fleet, o.openbDir)
		if err != nil {
			return group, err
		}
		if group, err = from.Group(o.group); err != nil {
			return group, fmt.Errorf("fleet %q: %w", o.fleet, err)
		}
	}
	if o.pattern != "" {
		group.Name = o.pattern
	}
	group.Count = &o.count
	if group.Labels == nil {
		group.Labels = make(map[string]string)
	}
	if group.Allocatable == nil {
		group.Allocatable = make(map[corev1.ResourceName]resource.Quantity)
	}
	for key, value := range o.labels {
		group.Labels[key] = value
	}
	for name, text := range o.resources {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return group, fmt.Errorf("--resource %s=%s: %w", name, text, err)
		}
		group.Allocatable[corev1.ResourceName(name)] = quantity
	}
	for _, text := range o.taints {
		taint, err := parseTaint(text)
		if err != nil {
			return group, err
		}
		group.Taints = append(group.Taints, taint)
	}
	if err := group.Validate(); err != nil {
		return group, fmt.Errorf("the nodes to add: %w", err)
	}
	return group, nil
}

func parseTaint(text string) (corev1.Taint, error) {
	rest, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	if !ok || len(validation.IsQualifiedName(key)) > 0 {
		return corev1.Taint{}, fmt.Errorf("--taint %q: must be KEY=VALUE:EFFECT or KEY:EFFECT", text)
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}
