package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// configureOptions are the flags of "apply" and "delete".
type configureOptions struct {
	server    *server
	files     []string
	namespace string
	dryRun    bool
	output    output.Format
}

func (o *configureOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` of Kueue's manifests; - is standard input (may be repeated)")
	flags.BoolVar(&o.dryRun, "dry-run", false, "check the objects and show the changes, but change nothing")
	program.AddOutput(cmd, flags, &o.output)
}

func applyCommand(s *server) *cobra.Command {
	o := &configureOptions{server: s}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Configure queues with Kueue's manifests",
		Long: `Configure queues with Kueue's manifests (ResourceFlavor, ClusterQueue, Cohort,
LocalQueue, WorkloadPriorityClass, AdmissionCheck, ProvisioningRequestConfig, Topology),
v1beta1 and v1beta2, while Muster runs. MultiKueueConfig and MultiKueueCluster are
stored without effect. queue-manager checks all of them together with the present
objects, stores all or none, and uses them from then on. It refuses unknown fields,
and warns about fields without effect and queues that admit nothing.

A file may be a List, such as "kubectl get clusterqueues,localqueues -A -o yaml" shows.
Objects of other kinds in it are skipped with a warning; Muster does not create them.

The queues file of queue-manager takes precedence over applied objects.`,
		Example: "  muster apply -f kueue-resources.yaml\n  muster apply -f kueue-resources.yaml --dry-run",
		Args:    program.Args(0, 0, "no argument, but -f FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			objects, err := o.read(cmd)
			if err != nil {
				return err
			}
			request := query.ConfigureRequest{DryRun: o.dryRun}
			for _, object := range objects {
				request.Apply = append(request.Apply, object.Manifest)
			}
			return o.configure(cmd, request)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func deleteCommand(s *server) *cobra.Command {
	o := &configureOptions{server: s}
	cmd := &cobra.Command{
		Use:   "delete -f FILE | KIND NAME",
		Short: "Delete applied objects",
		Long: `Delete applied objects: those in files, or one by kind and name. The command deletes
nothing if a queue among them has workloads, or another object refers to one of them.

"muster cancel" ends workloads.`,
		Example: "  muster delete localqueue user-queue -n default\n  muster delete -f kueue-resources.yaml",
		Args:    program.Args(0, 2, "a kind and a name, or -f FILE"),
		RunE: func(cmd *cobra.Command, names []string) error {
			request := query.ConfigureRequest{DryRun: o.dryRun}
			if len(names) > 0 {
				key, err := o.key(names)
				if err != nil {
					return err
				}
				request.Delete = []kueue.Key{key}
				return o.configure(cmd, request)
			}
			objects, err := o.read(cmd)
			if err != nil {
				return err
			}
			for _, object := range objects {
				request.Delete = append(request.Delete, object.Key)
			}
			return o.configure(cmd, request)
		},
		ValidArgsFunction: completeApplied(s),
	}
	o.addFlags(cmd)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "the `namespace` of a LocalQueue")
	return cmd
}

// key names one object by kind and name.
func (o *configureOptions) key(names []string) (kueue.Key, error) {
	if len(names) != 2 || len(o.files) > 0 {
		return kueue.Key{}, exit.Usagef("got arguments %q and %d files; want KIND NAME, or -f FILE; `muster cancel NAME` ends a workload", names, len(o.files))
	}
	kind, err := kueue.KindOf(names[0])
	if err != nil && isWorkloadKind(names[0]) {
		return kueue.Key{}, exit.Usagef("kind %q is of workloads: `muster cancel %s` ends one", names[0], output.Cell(names[1]))
	}
	if err != nil {
		return kueue.Key{}, exit.Usagef("%w", err)
	}
	key := kueue.Key{Kind: kind, Name: names[1]}
	if kind == "LocalQueue" {
		key.Namespace = o.namespace
	}
	return key, nil
}

// isWorkloadKind reports whether a kind is submitted, and not applied; people write it as
// kubectl takes it, too.
func isWorkloadKind(kind string) bool {
	kind = strings.TrimSuffix(strings.ToLower(kind), "s")
	return slices.Contains([]string{"workload", "raycluster", "rayjob", "rayservice", "raycronjob", "appwrapper"}, kind)
}

// read reads the manifests of all files, and names what it skips.
func (o *configureOptions) read(cmd *cobra.Command) ([]kueue.Object, error) {
	if len(o.files) == 0 {
		return nil, exit.Usagef("no manifest given; want -f FILE, or -f - for standard input")
	}
	var objects []kueue.Object
	for _, file := range o.files {
		content, err := readFile(file, cmd.InOrStdin())
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		for _, d := range manifest.Split(content) {
			if isWorkloadKind(d.Kind) {
				return nil, exit.Usagef("%s: %s is a workload: `muster submit -f %[1]s` submits it", file, d)
			}
		}
		parsed, skipped, err := kueue.ParseFile(content)
		if err != nil {
			return nil, exit.With(exit.Rejected, fault.Of(err).In(file))
		}
		for _, what := range skipped {
			fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s: %s\n", file, what)
		}
		objects = append(objects, parsed...)
	}
	if len(objects) == 0 {
		return nil, exit.Usagef("there is no manifest in %q", o.files)
	}
	return objects, nil
}

// maxRequest is below what a NATS server takes as it is shipped.
const maxRequest = 1 << 20

func (o *configureOptions) configure(cmd *cobra.Command, request query.ConfigureRequest) error {
	encoded, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode the manifests: %w", err)
	}
	if len(encoded) > maxRequest {
		return exit.With(exit.Rejected, fmt.Errorf("the manifests have %d bytes; want at most %d: apply them in parts", len(encoded), maxRequest))
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		answer, err := client.Configure(ctx, "", request)
		var refused *query.ProblemError
		if errors.As(err, &refused) {
			return exit.With(exit.Rejected, fmt.Errorf("change the configuration: %w", err))
		}
		if err != nil {
			return err
		}
		if o.output.Data() {
			return output.Print(cmd.OutOrStdout(), o.output, answer, nil)
		}
		warn(cmd.ErrOrStderr(), answer.Objects)
		return output.Outcomes(cmd.OutOrStdout(), answer.Objects, request.DryRun)
	})
}

// warn prints once each what has no effect and which queues admit nothing.
func warn(w io.Writer, objects []query.Configured) {
	warned := map[string]bool{"": true}
	for _, object := range objects {
		for _, note := range append(object.Notes, object.Held) {
			if !warned[note] {
				fmt.Fprintln(w, "Warning:", note)
			}
			warned[note] = true
		}
	}
}
