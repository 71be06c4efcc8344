package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
)

// held is what a command holds or resumes.
type held struct {
	query.HoldRequest
	what          string           // for messages
	now, partly   *quota.QueueStop // the hold of all that is meant, or in one namespace of it
	waiting, live int
	stopPolicy    string
}

// changeHold is what "hold" and "resume" do with what they have found.
type changeHold func(ctx context.Context, cmd *cobra.Command, client *query.Client, h held) error

// queue looks a queue up and changes its hold.
func (o *holdOptions) queue(cmd *cobra.Command, name string, change changeHold) error {
	if o.all && o.namespace != "" {
		return exit.Usagef("--all-namespaces and --namespace %q are both set; want one of them", o.namespace)
	}
	return o.apply(cmd, func(answer query.QueuesAnswer) (held, error) { return o.findQueue(answer.Queues, name) }, change)
}

// findQueue returns the queue that is meant: the only one of the name, unless a namespace
// is given, or all of the name are meant or held together.
func (o *holdOptions) findQueue(queues []query.Queue, name string) (held, error) {
	h := held{HoldRequest: query.HoldRequest{Queue: name, Namespace: o.namespace}, what: "queue " + name}
	found := query.Named(queues, name, "")
	if o.all && len(found) == 0 {
		return h, noQueue(queues, name, "")
	}
	whole := len(found) > 0 && found[0].Hold != nil && found[0].Hold.Namespace == "" // all of the name are held together
	if !o.all && (o.namespace != "" || !whole) {
		q, err := findQueue(queues, name, o.namespace)
		if err != nil {
			return h, err
		}
		found = []query.Queue{q}
		if o.namespace != "" {
			h.what += " of namespace " + o.namespace
		}
	}
	for _, q := range found {
		h.waiting, h.live, h.stopPolicy = h.waiting+q.Waiting, h.live+q.Live, cmp.Or(h.stopPolicy, q.StopPolicy)
		switch {
		case q.Hold == nil:
		case q.Hold.Namespace == "" || q.Hold.Namespace == h.Namespace || !o.all && len(q.Namespaces) == 1:
			h.now = q.Hold
		default:
			h.partly = q.Hold
		}
	}
	return h, nil
}

// clusterQueue looks a ClusterQueue up and changes its hold.
func (o *holdOptions) clusterQueue(cmd *cobra.Command, name string, change changeHold) error {
	return o.apply(cmd, func(answer query.QueuesAnswer) (held, error) {
		var names []string
		for _, q := range clusterQueues(answer) {
			if q.Name == name {
				return held{
					HoldRequest: query.HoldRequest{ClusterQueue: name}, what: "ClusterQueue " + name, now: q.Hold,
					waiting: q.Waiting, live: q.Live, stopPolicy: q.StopPolicy,
				}, nil
			}
			names = append(names, q.Name)
		}
		return held{}, exit.NotFoundf("there is no ClusterQueue %q; there are %s", name, strings.Join(names, ", "))
	}, change)
}

func (o *holdOptions) apply(cmd *cobra.Command, find func(query.QueuesAnswer) (held, error), change changeHold) error {
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		answer, err := client.Queues(ctx)
		if err != nil {
			return err
		}
		h, err := find(answer)
		if err != nil {
			return err
		}
		err = change(ctx, cmd, client, h)
		var refused *query.ProblemError
		if errors.As(err, &refused) {
			return exit.With(exit.Rejected, fmt.Errorf("%s %s: %w", cmd.Parent().Name(), h.what, err))
		}
		return err
	})
}

func (o *holdOptions) hold(ctx context.Context, cmd *cobra.Command, client *query.Client, h held) error {
	if h.now != nil {
		message := h.now.Message()
		if h.ClusterQueue != "" {
			message = h.now.OfClusterQueue()
		}
		fmt.Fprintf(cmd.OutOrStdout(), "unchanged: %s\n", message)
		return nil
	}
	h.By, h.Why = o.by, o.why
	if _, err := h.configure(ctx, client); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is held: %d workloads wait, %d continue\n", h.what, h.waiting, h.live)
	return nil
}

func (o *holdOptions) resume(ctx context.Context, cmd *cobra.Command, client *query.Client, h held) error {
	if h.now != nil && h.now.Namespace == "" && h.Namespace != "" {
		return exit.Usagef("queue %s is held in all namespaces: resume it with --all-namespaces", h.Queue)
	}
	if stop := cmp.Or(h.now, h.partly); stop != nil && h.Namespace == "" && !o.all {
		h.Namespace = stop.Namespace
	}
	h.Resume = true
	answer, err := h.configure(ctx, client)
	if err != nil {
		return err
	}
	if len(answer.Objects) == 1 && answer.Objects[0].Outcome == query.Deleted {
		fmt.Fprintf(cmd.OutOrStdout(), "%s is resumed\n", h.what)
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "unchanged: no operator holds %s\n", h.what)
	}
	if h.stopPolicy != "" && h.stopPolicy != quota.StopNone {
		fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s stays held by stopPolicy %s of its ClusterQueue or LocalQueue; change that manifest.\n", h.what, h.stopPolicy)
	}
	return nil
}

// configure sends the change as an operator on NATS does.
func (h held) configure(ctx context.Context, client *query.Client) (query.ConfigureAnswer, error) {
	request, err := h.ConfigureRequest(time.Now())
	if err != nil {
		return query.ConfigureAnswer{}, err
	}
	return client.Configure(ctx, "", request)
}

// completeClusterQueues offers the names of ClusterQueues.
func completeClusterQueues(s *server) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(given) == 0 {
			_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
				answer, err := client.Queues(ctx)
				for _, q := range clusterQueues(answer) {
					names = append(names, q.Name)
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
