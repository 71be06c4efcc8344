package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// rows is a database in memory.
type rows struct {
	workloads map[workload.ID]StoredWorkload
	nodes     map[admission.NodeKey]StoredNode
	version   int64
	lastOrder int64
}

// commit writes changes and returns what a follower sees of them.
func (r *rows) commit(c Changes) Delta {
	if c.Empty() {
		return Delta{Version: r.version, LastOrder: r.lastOrder}
	}
	r.version = c.Version
	d := Delta{Version: c.Version}
	write := func(w StoredWorkload) {
		if w.Phase.Final() && !w.Holding {
			delete(r.workloads, w.ID)
			d.Gone = append(d.Gone, w.ID)
			return
		}
		w.Placements, w.PodSets = slices.Clone(w.Placements), slices.Clone(w.PodSets)
		r.workloads[w.ID] = w
		d.Workloads = append(d.Workloads, w)
	}
	for _, a := range c.Added {
		r.lastOrder = max(r.lastOrder, a.Order)
		write(StoredWorkload{Record: a.Record, Order: a.Order})
	}
	for _, u := range c.Updated {
		write(StoredWorkload{Record: u, Order: r.workloads[u.ID].Order})
	}
	d.LastOrder = r.lastOrder
	for _, n := range c.Nodes {
		key := admission.NodeKey{Cluster: n.Cluster, Name: n.Name}
		if n.Drop {
			delete(r.nodes, key)
			d.GoneNodes = append(d.GoneNodes, key)
			continue
		}
		stored := StoredNode{Node: n.Node, Version: n.Version, Present: n.Present}
		r.nodes[key] = stored
		d.Nodes = append(d.Nodes, stored)
	}
	return d
}

func (r *rows) stored() Stored {
	fresh := Stored{Queues: slices.Collect(maps.Values(newTestState().queues)), MaxEvent: 1 << 20, Version: r.version, LastOrder: r.lastOrder}
	for _, w := range r.workloads {
		fresh.Workloads = append(fresh.Workloads, w)
	}
	slices.SortFunc(fresh.Workloads, func(a, b StoredWorkload) int { return cmp.Compare(a.Order, b.Order) })
	for _, n := range r.nodes {
		fresh.Nodes = append(fresh.Nodes, n)
	}
	return fresh
}

// shown is what two books must agree in.
func shown(s *State) any {
	records, orders := map[workload.ID]workload.Record{}, map[workload.ID]int64{}
	for e := range s.live.All() {
		records[e.ID], orders[e.ID] = e.Record, e.order
	}
	reserved, holders := map[string]string{}, map[string]int{}
	for key, n := range s.nodes {
		reserved[key.Name] = fmt.Sprint(n.reserved, n.present, n.version, n.Allocatable)
		holders[key.Name] = len(n.holders)
	}
	named := map[namespacedKind]map[string]workload.ID{}
	for like, homes := range s.objects {
		named[like] = map[string]workload.ID{}
		for home, names := range homes {
			for e := range names.All() {
				named[like][home+"/"+e.Name] = e.ID
			}
		}
	}
	waiting, started := s.admission.Counts()
	return []any{records, orders, named, reserved, holders, waiting, started, s.lastOrder, s.version, s.notReady}
}

// A state that follows equals one that is loaded again, and decides the same.
func TestFollowingIsAsGoodAsReadingAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		leader := newTestState()
		db := &rows{workloads: map[workload.ID]StoredWorkload{}, nodes: map[admission.NodeKey]StoredNode{}}
		follower := New(0, db.stored())
		now := time.Unix(1_000_000, 0)
		for seq := range uint64(rapid.IntRange(1, 50).Draw(t, "inputs")) {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			drawInput(t, seq+1)(leader, now)
			leader.Decide(now)
			if rapid.Bool().Draw(t, "commit") {
				follower.Follow(db.commit(leader.Flush()))
			}
		}
		follower.Follow(db.commit(leader.Flush()))
		fresh := New(0, db.stored())
		if diff := gocmp.Diff(shown(fresh), shown(follower), gocmp.AllowUnexported(namespacedKind{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("loaded again (-) and followed (+) differ:\n%s", diff)
		}
		for _, s := range []*State{fresh, follower} {
			s.Lead(2, 1<<20)
			s.Decide(now)
		}
		if diff := gocmp.Diff(shown(fresh), shown(follower), gocmp.AllowUnexported(namespacedKind{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("after a decision, loaded again (-) and followed (+) differ:\n%s", diff)
		}
	})
}
