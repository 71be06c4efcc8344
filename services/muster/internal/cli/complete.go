package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/services/internal/client/program"
)

// completeFlags completes the flags of a command and of those below by what they are called.
// Those that name no file and complete nothing else complete nothing.
func completeFlags(s *server, cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		completeFlags(s, below)
	}
	complete := func(f *pflag.Flag) {
		if _, is := cmd.GetFlagCompletionFunc(f.Name); is || f.NoOptDefVal != "" || f.Hidden {
			return
		}
		switch f.Name {
		case "queue":
			program.CompleteFlag(cmd, f.Name, anyArguments(completeQueues(s)))
		case "namespace":
			program.CompleteFlag(cmd, f.Name, completeOfQueues(s, namespacesOf))
		case "priority-class":
			program.CompleteFlag(cmd, f.Name, completeOfQueues(s, priorityClassesOf))
		case "drain":
			program.CompleteFlag(cmd, f.Name, anyArguments(completeNodes(s)))
		default:
			if kind, usage := pflag.UnquoteUsage(f); kind != "file" && !strings.Contains(usage, "file") {
				program.CompleteFlag(cmd, f.Name, cobra.NoFileCompletions)
			}
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(complete)
	cmd.PersistentFlags().VisitAll(complete)
}

// anyArguments completes a flag as the first argument of a command.
func anyArguments(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(cmd, nil, begun)
	}
}

// completeOfQueues offers names that the list of queues has.
func completeOfQueues(s *server, of func(query.QueuesAnswer) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
			answer, err := client.Queues(ctx)
			names = of(answer)
			return err
		})
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

func namespacesOf(answer query.QueuesAnswer) (names []string) {
	for _, q := range answer.Queues {
		names = append(names, q.Namespaces...)
	}
	return names
}

func priorityClassesOf(answer query.QueuesAnswer) (names []string) {
	for _, class := range answer.PriorityClasses {
		names = append(names, class.Name)
	}
	return names
}

// completeApplied offers a kind, and then the names of the applied objects of that kind.
func completeApplied(s *server) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		switch len(given) {
		case 0:
			for _, kind := range kueue.Kinds() {
				names = append(names, strings.ToLower(kind))
			}
		case 1:
			kind, _ := kueue.KindOf(given[0])                                                // one that is not known has no objects
			_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
				answer, err := client.Applied(ctx)
				for _, object := range answer.Objects {
					if object.Kind == kind {
						names = append(names, object.Name)
					}
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
