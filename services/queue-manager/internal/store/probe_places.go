package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// places tries the state of live workloads with their places.
func (p *probe) places(ctx context.Context, c state.Changes) error {
	live := slices.Clone(c.Updated)
	for _, a := range c.Added {
		live = append(live, a.Record)
	}
	live = slices.DeleteFunc(live, isCold)
	of := map[workload.ID][]state.Reservation{}
	for _, r := range slices.Concat(c.Reserved, c.Replaced) {
		of[r.Workload] = append(of[r.Workload], r)
	}
	err := probePart(ctx, p, PartPlaces, live, func(b *pgx.Batch, some []workload.Record) {
		rows := make([]row, len(some))
		var reserved []state.Reservation
		for i, r := range some {
			rows[i] = newRow(r, 0)
			reserved = append(reserved, of[r.ID]...)
		}
		p.store.queueShapes(b, unknownEpoch, rows)
		queueLive(b, nil, rows, reserved)
	}, func(r workload.Record) Refusal { return ofWorkload(r.ID) })
	if err != nil {
		return err
	}
	return p.attribute(ctx, of)
}

// attribute finds out of which refusals of places the workload itself is the cause. The database
// may refuse to reserve anything on one of its nodes, or to charge anything to its quota, for
// every workload: all that come after it would be refused, too. A guard of the ledger judges amounts, which
// are the workload's own.
func (p *probe) attribute(ctx context.Context, of map[workload.ID][]state.Reservation) error {
	refused := p.refused
	p.refused = nil
	blamed := map[admission.NodeKey]bool{}
	for _, r := range refused {
		reserved := of[r.Workload]
		if len(reserved) == 0 || ViolatesGuard(r.Cause) {
			p.refused = append(p.refused, r)
			continue
		}
		if slices.ContainsFunc(reserved, func(row state.Reservation) bool { return blamed[nodeOf(row)] }) {
			continue // it may be tried elsewhere
		}
		causes, err := p.causes(ctx, r, reserved)
		if err != nil {
			return err
		}
		for _, cause := range causes {
			blamed[cause.Node] = cause.Workload == ""
		}
		p.refused = append(p.refused, causes...)
	}
	return nil
}

// causes tries a workload that was made up in the places of a refused one: on each node without
// charges, then charged to each scope of its quota. It returns the nodes that take nothing, or the
// scopes in which nothing can be used, or the refusal as it was.
func (p *probe) causes(ctx context.Context, r Refusal, reserved []state.Reservation) ([]Refusal, error) {
	alone := *p
	alone.refused, alone.passed = nil, nil
	nodes := slices.CompactFunc(slices.SortedFunc(slices.Values(reserved), byNode), func(x, y state.Reservation) bool { return nodeOf(x) == nodeOf(y) })
	err := probePart(ctx, &alone, PartPlaces, nodes, func(b *pgx.Batch, some []state.Reservation) {
		alone.queueMadeUp(b, reservedOn(some, reserved), nil)
	}, func(row state.Reservation) Refusal { return Refusal{Node: nodeOf(row)} })
	if err != nil {
		return nil, err
	}
	if found := withoutGuards(alone.refused); len(found) > 0 || alone.passed != nil {
		return found, unlessFound(found, alone.passed)
	}
	alone.refused = nil
	err = probePart(ctx, &alone, PartCharges, scopesOf(reserved), func(b *pgx.Batch, scopes []string) {
		alone.queueMadeUp(b, reserved, scopes)
	}, func(scope string) Refusal { return Refusal{Workload: r.Workload, Scope: scope} })
	if err != nil {
		return nil, err
	}
	if found := withoutGuards(alone.refused); len(found) > 0 || alone.passed != nil {
		return found, unlessFound(found, alone.passed)
	}
	return []Refusal{r}, nil
}

// unlessFound is the error for which a part could not be tried, unless another part is to blame: one
// that was not tried is not innocent, and the workload may be.
func unlessFound(found []Refusal, passed error) error {
	if len(found) > 0 {
		return nil
	}
	return passed
}

func nodeOf(r state.Reservation) admission.NodeKey {
	return admission.NodeKey{Cluster: r.Cluster, Name: r.Node}
}

func byNode(x, y state.Reservation) int {
	return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Node, y.Node))
}

// scopesOf returns the scopes of quota to which reservations are charged.
func scopesOf(reserved []state.Reservation) (scopes []string) {
	for _, r := range reserved {
		if r.Charges != nil {
			scopes = append(scopes, r.Charges.Scopes...)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// reservedOn returns those of all reservations that are on the nodes of some.
func reservedOn(some, all []state.Reservation) []state.Reservation {
	return slices.DeleteFunc(slices.Clone(all), func(r state.Reservation) bool {
		return !slices.ContainsFunc(some, func(on state.Reservation) bool { return nodeOf(on) == nodeOf(r) })
	})
}

func withoutGuards(refused []Refusal) []Refusal {
	return slices.DeleteFunc(refused, func(r Refusal) bool { return ViolatesGuard(r.Cause) })
}

// queueMadeUp writes, and takes back, the admission of a workload that there is not. For each of
// the reservations it has one pod, which asks for one of each resource: as little as there can
// be, so that only the rows of nodes and of quota can be the reason of a refusal. It is charged to
// the given scopes alone.
func (p *probe) queueMadeUp(batch *pgx.Batch, places []state.Reservation, scopes []string) {
	record := madeUp(p.queue, places[0].Cluster, time.Now())
	record.PodSets = nil
	reserved := make([]state.Reservation, len(places))
	for i, of := range places {
		set := fmt.Sprintf("probe-%d", i)
		record.PodSets = append(record.PodSets, workload.PodSet{Name: set, Count: 1})
		reserved[i] = state.Reservation{
			Workload: record.ID, Attempt: 1, Cluster: record.Cluster,
			Placement: workload.Placement{PodSet: set, Node: of.Node, Pods: 1}, Requests: resource.List{},
		}
		for name, amount := range of.Requests {
			if amount > 0 {
				reserved[i].Requests[name] = 1
			}
		}
		if of.Charges != nil && len(scopes) > 0 {
			reserved[i].Charges = &state.Charges{Scopes: scopes, Flavors: of.Charges.Flavors}
		}
	}
	undone(batch, func() {
		rows := []row{newRow(record, sampleOrder)}
		p.store.queueShapes(batch, unknownEpoch, rows)
		queueLive(batch, rows, nil, reserved)
	})
}

// madeUp is a gang of one pod that there is not, admitted to a cluster.
func madeUp(queue, cluster string, now time.Time) workload.Record {
	id := workload.ID(uuid.NewString())
	name := "muster-probe-" + string(id)
	return workload.Record{
		Workload: workload.Workload{
			ID: id, Queue: queue, Namespace: name, Kind: "Probe", Name: name, Digest: name,
			PodSets: []workload.PodSet{{Name: "probe", Count: 1}},
		},
		Phase: workload.Admitted, Attempt: 1, Cluster: cluster, Holding: true, Times: workload.Times{Submitted: now, Admitted: now},
	}
}
