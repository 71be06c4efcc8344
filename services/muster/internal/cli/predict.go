package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// predictOptions are the flags of "predict".
type predictOptions struct {
	files    []string
	output   output.Format
	profile  string
	admitted bool
}

func predictCommand() *cobra.Command {
	o := &predictOptions{}
	cmd := &cobra.Command{
		Use:   "predict -f FILE",
		Short: "Show the pods that KubeRay would create from a manifest",
		Long: `Show, without a server, the pods that KubeRay would create from RayClusters,
RayJobs, RayServices and one run of RayCronJobs: how many of each group, what
each requests of its node with everything that KubeRay adds, and where it may run.

The command rejects manifests that KubeRay or the API server would refuse, as "muster
submit" does. For manifests that only Muster would reject it shows the pods, and the
reason on standard error. It skips documents of other kinds.

--admitted shows the pods for which Muster reserves places instead. They differ for
a cluster with the in-tree autoscaler: Muster admits it at its maximum or, with the
annotation muster.dev/autoscaling: minimum, at its minimum.`,
		Example: `  muster predict -f glue.yaml
  muster predict -f glue.yaml -o json
  generate | muster predict -f - --kuberay operator.yaml`,
		Args: program.Args(0, 0, "no argument, but -f FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` of manifests; - is standard input (may be repeated)")
	program.FormerFlag(flags, "file", "filename")
	program.AddOutput(cmd, flags, &o.output)
	flags.StringVar(&o.profile, "kuberay", "", "`file` with the settings of the KubeRay operator (default: 1.6.2 as shipped)")
	flags.BoolVar(&o.admitted, "admitted", false, "show the pods for which Muster reserves places")
	return cmd
}

func (o *predictOptions) run(cmd *cobra.Command) error {
	if len(o.files) == 0 {
		return exit.Usagef("no manifest given; want -f FILE, or -f - for standard input")
	}
	operator := ray.Shipped()
	if o.profile != "" {
		content, err := os.ReadFile(o.profile)
		if err != nil {
			return exit.Usagef("%w", err)
		}
		if operator, err = ray.ReadOperator(content); err != nil {
			return exit.Usagef("%s: %w", o.profile, err)
		}
	}
	documents, err := o.documents(cmd.InOrStdin())
	if err != nil {
		return err
	}
	groups, err := o.predict(operator, documents, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return output.Print(cmd.OutOrStdout(), o.output, groups, func() output.Table { return output.Predicted(groups) })
}

// documents reads the Ray objects of all files, or what is there when there is
// none.
func (o *predictOptions) documents(in io.Reader) ([]manifest.Document, error) {
	var all, ofRay []manifest.Document
	for _, file := range o.files {
		content, err := readFile(file, in)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		documents := manifest.Split(content)
		if len(documents) == 0 {
			return nil, exit.Usagef("there is no manifest in %q", file)
		}
		for _, d := range documents {
			all = append(all, d)
			if d.Kind == "" || d.APIVersion == "" || strings.HasPrefix(d.APIVersion, "ray.io/") {
				ofRay = append(ofRay, d)
			}
		}
	}
	if len(ofRay) == 0 {
		return all, nil
	}
	return ofRay, nil
}

// predict predicts each document, or reports all that cannot be.
func (o *predictOptions) predict(operator ray.Operator, documents []manifest.Document, notes io.Writer) ([]output.Group, error) {
	groups := []output.Group{}
	var faults []error
	for _, document := range documents {
		predicted, err := operator.Predict(document.Raw)
		if err != nil || o.admitted && predicted.Refusal != nil {
			reason := workload.Reason{Kind: workload.ReasonInvalid, Message: errors.Join(err, predicted.Refusal).Error()}
			faults = append(faults, fmt.Errorf("%s was rejected: %s", document, output.Reason(&reason)))
			continue
		}
		if predicted.Refusal != nil {
			fmt.Fprintf(notes, "muster: %s would be rejected by Muster: %v\n", document, predicted.Refusal)
		}
		for _, warning := range predicted.Warnings {
			fmt.Fprintf(notes, "muster: %s: warning: %s\n", document, warning)
		}
		sets := predicted.Created
		if o.admitted {
			sets = predicted.PodSets
		}
		groups = append(groups, output.Groups(document.String(), sets)...)
	}
	if len(faults) > 0 {
		return nil, exit.With(exit.Rejected, errors.Join(faults...))
	}
	return groups, nil
}
