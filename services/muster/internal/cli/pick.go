package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

// picked are the workloads that the flags of "get workloads" select, and their order.
type picked struct {
	id               workload.ID // the only one; empty for all
	queue, namespace string
	phases           []workload.Phase
	labels           []query.LabelRequirement
	since            time.Duration
	limit            int
	sort             func(a, b *workload.Record) int // nil keeps the order of submission
}

// sorts are the orders of workloads by the names of --sort-by.
func sorts() map[string]func(a, b *workload.Record) int {
	return map[string]func(a, b *workload.Record) int{
		"submitted": func(a, b *workload.Record) int { return a.Times.Submitted.Compare(b.Times.Submitted) },
		"finished":  func(a, b *workload.Record) int { return a.Times.Finished.Compare(b.Times.Finished) },
		"name": func(a, b *workload.Record) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
		},
		"priority": func(a, b *workload.Record) int { return cmp.Compare(b.Priority, a.Priority) },
		"position": func(a, b *workload.Record) int {
			return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Position, b.Position))
		},
	}
}

func sortFields() []string { return slices.Sorted(maps.Keys(sorts())) }

// pick checks the flags of "get workloads".
func (o *getOptions) pick(names []string) (picked, error) {
	p := picked{queue: o.queue, namespace: o.namespace, since: o.since, limit: o.limit}
	var err error
	if p.phases, err = parsePhases(o.phases); err != nil {
		return p, err
	}
	if p.labels, err = parseSelector(o.selector); err != nil {
		return p, err
	}
	if err := o.check(); err != nil {
		return p, err
	}
	switch {
	case o.watch && len(p.labels) > 0:
		return p, exit.Usagef("--watch and --selector: the events of workloads have no labels; want one of them")
	case o.limit < 0:
		return p, exit.Usagef("--limit %d: want a positive number", o.limit)
	case o.since < 0:
		return p, exit.Usagef("--since %s: want a positive duration", o.since)
	case o.watch && o.output.Data():
		return p, exit.Usagef("--watch prints lines; for data use `muster events -o json`")
	case len(names) == 1 && (o.limit > 0 || o.since > 0 || o.sortBy != "" || len(p.labels) > 0):
		return p, exit.Usagef("--limit, --since, --selector and --sort-by are for lists; want no name")
	}
	if o.sortBy != "" {
		if p.sort = sorts()[o.sortBy]; p.sort == nil {
			return p, exit.Usagef("--sort-by %q: want %s", o.sortBy, strings.Join(sortFields(), ", "))
		}
	}
	return p, nil
}

func parsePhases(names []string) ([]workload.Phase, error) {
	var phases []workload.Phase
	for _, name := range names {
		phase := workload.Phase(name)
		if !slices.Contains(workload.Phases(), phase) {
			var known []string
			for _, p := range workload.Phases() {
				known = append(known, string(p))
			}
			return nil, exit.Usagef("phase %q: want %s", name, strings.Join(known, ", "))
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

// selectorUsage is the help of --selector.
const selectorUsage = "only those whose manifest has such `labels`, as kubectl takes them: team=a,stage!=test; of an AppWrapper those of its first object"

// parseSelector reads --selector; empty is none.
func parseSelector(text string) ([]query.LabelRequirement, error) {
	if text == "" {
		return nil, nil
	}
	labels, err := query.ParseSelector(text)
	if err != nil {
		return nil, exit.Usagef("--selector: %w", err)
	}
	return labels, nil
}

// list returns the workloads of which the selected ones are some, or the one that is named,
// which is then the only one that is selected.
func (o *getOptions) list(ctx context.Context, client *query.Client, names []string, selected *picked) ([]workload.Record, error) {
	if len(names) == 1 {
		one, err := findWorkload(ctx, client, names[0], o.namespace)
		selected.id = one.ID
		return []workload.Record{one}, err
	}
	request := query.WorkloadsRequest{Namespace: o.namespace, Queue: o.queue, Phases: selected.phases, Labels: selected.labels}
	if o.watch { // others may come to a selected phase, or have been in one
		request.Phases = nil
	}
	records, err := everyWorkload(ctx, client, request)
	if err == nil && o.queue != "" && len(records) == 0 {
		err = thereIsQueue(ctx, client, o.queue)
	}
	return records, err
}

// of returns those of the records that are selected, in their order.
func (p picked) of(records []workload.Record, now time.Time) []workload.Record {
	records = slices.DeleteFunc(records, func(r workload.Record) bool { return !p.has(&r, now) })
	if p.sort != nil {
		slices.SortStableFunc(records, func(a, b workload.Record) int { return p.sort(&a, &b) })
	}
	if p.limit > 0 && len(records) > p.limit {
		records = records[len(records)-p.limit:]
	}
	return records
}

// has reports whether a record is selected.
func (p picked) has(r *workload.Record, now time.Time) bool {
	return (p.id == "" || r.ID == p.id) && (p.queue == "" || r.Queue == p.queue) && (p.namespace == "" || r.Namespace == p.namespace) &&
		(len(p.phases) == 0 || slices.Contains(p.phases, r.Phase)) && (p.since == 0 || r.Times.Submitted.After(now.Add(-p.since)))
}
