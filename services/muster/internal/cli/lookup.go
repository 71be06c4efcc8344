package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

// everyWorkload returns all pages of an answer.
func everyWorkload(ctx context.Context, client *query.Client, request query.WorkloadsRequest) ([]workload.Record, error) {
	var all []workload.Record
	for {
		page, err := client.Workloads(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Workloads...)
		if page.Next == 0 {
			return all, nil
		}
		request.After = page.Next
	}
}

// findWorkload returns the workload that a person means by a name, an id, or KIND/NAME as
// "-o name" prints it.
func findWorkload(ctx context.Context, client *query.Client, name, namespace string) (workload.Record, error) {
	request := query.WorkloadsRequest{Name: name, Namespace: namespace}
	if uuid.Validate(name) == nil {
		request = query.WorkloadsRequest{ID: workload.ID(name)}
	}
	kind, short, given := strings.Cut(name, "/")
	if given {
		request.Name = short
	}
	found, err := everyWorkload(ctx, client, request)
	if err != nil {
		return workload.Record{}, err
	}
	if given {
		found = slices.DeleteFunc(found, func(r workload.Record) bool { return !strings.EqualFold(r.Kind, kind) })
	}
	return choose(found, name, namespace)
}

// choose picks the one that is meant: names are used again after an end, so a
// live one comes before those that have ended, and a later before an earlier.
// Records are in the order of submission.
func choose(found []workload.Record, name, namespace string) (workload.Record, error) {
	if len(found) == 0 {
		where := ""
		if namespace != "" {
			where = fmt.Sprintf(" in namespace %q", namespace)
		}
		return workload.Record{}, exit.NotFoundf("there is no workload %q%s; `muster get workloads` lists them", name, where)
	}
	live := slices.DeleteFunc(slices.Clone(found), func(r workload.Record) bool { return r.Phase.Final() })
	candidates := live
	if len(live) == 0 {
		candidates = found
	}
	chosen := map[string]workload.Record{} // the latest of each object
	for _, r := range candidates {
		chosen[r.Namespace+"/"+r.Kind+"/"+r.MadeIn()] = r
	}
	if len(chosen) == 1 {
		return candidates[len(candidates)-1], nil
	}
	var named []string
	for _, r := range chosen {
		where := ""
		if home := r.MadeIn(); home != "" {
			where = " in cluster " + home
		}
		named = append(named, fmt.Sprintf("%s %s/%s%s (%s)", r.Kind, r.Namespace, r.Name, where, r.ID))
	}
	slices.Sort(named)
	return workload.Record{}, exit.Usagef("%q is the name of %d workloads: %s; choose with --namespace, or give the id",
		name, len(named), strings.Join(named, ", "))
}

// completeWorkloads offers the names of workloads; all of them, or those that
// have not ended.
func completeWorkloads(s *server, live bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		phases := map[string]workload.Phase{} // of the last of each name
		err := s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
			records, err := everyWorkload(ctx, client, query.WorkloadsRequest{})
			for _, r := range records {
				if !live || !r.Phase.Final() {
					phases[r.Name] = r.Phase
				}
			}
			for _, name := range slices.Sorted(maps.Keys(phases)) {
				names = append(names, cobra.CompletionWithDesc(name, string(phases[name])))
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAllOf offers, for a command that takes several names, those that are not given yet.
func completeAllOf(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := complete(cmd, nil, begun)
		return slices.DeleteFunc(names, func(name cobra.Completion) bool {
			bare, _, _ := strings.Cut(name, "\t")
			return slices.Contains(given, bare)
		}), directive
	}
}

// completeNodes offers the names of nodes.
func completeNodes(s *server) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(given) == 0 {
			_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
				answer, err := client.Nodes(ctx)
				for _, n := range answer.Nodes {
					names = append(names, n.Name)
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
