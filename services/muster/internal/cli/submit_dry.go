package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/internal/client/exit"
)

// try returns what Muster would reject of submissions, as far as that can be known without
// submitting them: by the manifests, for KubeRay as shipped, and by the queues there are.
func (o *submitOptions) try(cmd *cobra.Command, submissions []sent) error {
	var answer query.QueuesAnswer
	err := o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) (err error) {
		answer, err = client.Queues(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var failed []error
	for _, s := range submissions {
		description, err := o.tried(s, answer)
		if err != nil {
			failed = append(failed, exit.With(exit.Rejected, fmt.Errorf("%s would be rejected: %w", s.Document, err)))
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s would be submitted to queue %s: %s (dry run)\n", s.Document, s.queue, description)
	}
	return report(cmd.ErrOrStderr(), failed)
}

// tried describes what a submission asks for, or why it would be rejected.
func (o *submitOptions) tried(s sent, answer query.QueuesAnswer) (string, error) {
	if label := s.Document.Queue; label != "" && label != s.queue {
		return "", fmt.Errorf("metadata.labels[%s]: is %q, but the submission is to queue %q; submit it to the queue that the label names, or change the label",
			kube.QueueNameLabel, label, s.queue)
	}
	found := query.Named(answer.Queues, s.queue, "")
	if len(found) == 0 {
		return "", noQueue(answer.Queues, s.queue, "")
	}
	namespaces := query.NamespacesOf(found)
	if at := s.Document.Namespace; at != "" && len(namespaces) > 0 && !slices.Contains(namespaces, at) {
		return "", fmt.Errorf("queue %q does not serve namespace %q; it serves %s", s.queue, at, strings.Join(namespaces, ", "))
	}
	if len(found) > 1 && s.Document.Namespace == "" {
		return "", fmt.Errorf("%q is the name of queues in the namespaces %s, each with its own quota; name the namespace in metadata.namespace, or with --namespace",
			s.queue, strings.Join(namespaces, ", "))
	}
	if o.priorityClass != "" && !slices.ContainsFunc(answer.PriorityClasses, func(c quota.PriorityClass) bool { return c.Name == o.priorityClass }) {
		return "", fmt.Errorf("priority class %q does not exist", o.priorityClass)
	}
	if !strings.HasPrefix(s.Document.APIVersion, "ray.io/") {
		return "its manifest is checked only when it is submitted", nil
	}
	object, err := ray.Read(s.Document.Raw)
	if err != nil {
		return "", err
	}
	pods, sum := 0, resource.List{}
	for _, set := range object.PodSets {
		pods += set.Count
		sum = sum.Plus(set.Template.Requests.Times(int64(set.Count)))
	}
	delete(sum, resource.Pods)
	if pods == 1 {
		return "1 pod, " + sum.String(), nil
	}
	return fmt.Sprintf("%d pods, %s in sum", pods, sum), nil
}
