package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// refusalsOfNode are refusals of the node bad, by what is refused.
func refusalsOfNode() map[string]refusal {
	report := func(w *world) {
		w.publish(event.NodeSubject(cluster, "bad"), &event.NodeObserved{Version: w.nextVersion(), Node: nodeOf("bad", 1)})
	}
	known := func(w *world) { w.node("bad", 1) }
	shrink := func(w *world) {
		without := nodeOf("bad", 1)
		delete(without.Allocatable, "memory")
		w.publish(event.NodeSubject(cluster, "bad"), &event.NodeObserved{Version: w.nextVersion(), Node: without})
	}
	remove := func(w *world) {
		w.publish(event.NodeSubject(cluster, "bad"), &event.NodeRemoved{Version: w.nextVersion(), Cluster: cluster, Node: "bad"})
	}
	gangs := []string{"one", "two"}
	submit := func(w *world) {
		for _, name := range gangs {
			w.submit(gangOf(name, "default", 1))
		}
	}
	onGood := func(w *world) {
		w.t.Helper()
		for _, name := range gangs {
			command := w.command(event.WorkloadID("test", name), event.Present, 1)
			if slices.ContainsFunc(command.Placements, func(p workload.Placement) bool { return p.Node != "good" }) {
				w.t.Errorf("gang %s has the places %+v, want all on the other node", name, command.Placements)
			}
		}
		w.metric("muster_quarantined", 1) // the node, and no gang
	}
	return map[string]refusal{
		"a node":                     {nil, "nodes", "INSERT OR UPDATE", "NEW.name = 'bad'", "22P02", report, nil},
		"what a node has":            {nil, "node_resources", "INSERT", "NEW.node = 'bad'", "22003", report, nil},
		"what a node has no more":    {known, "node_resources", "UPDATE", "NEW.node = 'bad'", "P0001", shrink, nil},
		"the removal of a node":      {known, "nodes", "DELETE", "OLD.name = 'bad'", "XX123", remove, nil},
		"the removal of what it has": {known, "node_resources", "DELETE", "OLD.node = 'bad'", "42804", remove, nil},
		"room on a node":             {known, "node_resources", "UPDATE OF reserved", "NEW.node = 'bad'", "XX123", submit, onGood},
		"a place on a node":          {known, "reservations", "INSERT", "NEW.node = 'bad'", "XX123", submit, onGood},
	}
}

// A node that cannot be stored gets no gangs; the other nodes do.
func TestANodeThatIsRefusedIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	for name, c := range refusalsOfNode() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.before != nil {
				c.before(w)
			}
			w.countTerms()
			w.refuse(c.table, c.events, c.condition, c.state)
			c.then(w)
			w.node("good", 4)
			if c.want != nil {
				c.want(w)
			}
			w.others("first")
			w.waits(w.submit(gangOf("large", "default", 8)), workload.ReasonFit)
			if terms := w.terms(); terms > fewTerms {
				t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
			}
		})
	}
}

// Quota whose use cannot be stored is the fault of no gang: the gangs that would use it wait, gangs
// of other queues start, and all go on when it is over.
func TestQuotaThatIsRefusedHoldsItsQueueAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	w.apply(strings.Replace(oneQueue, "admissionChecks: [rayjob-gpu]", "stopPolicy: None", 1))
	w.countTerms()
	w.refuse("quota_usage", "UPDATE OF used", "NEW.scope LIKE '%cluster-queue'", "XX123")
	ids := make([]workload.ID, 2*fewTerms) // of which one is within quota at a time
	for i := range ids {
		ids[i] = w.submit(gangOf(fmt.Sprintf("gang-%d", i), "user-queue", 1))
	}
	for _, id := range ids {
		w.waits(id, workload.ReasonNotStorable)
	}
	w.others("first")
	w.others("second")
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
	w.sql(`DROP TRIGGER refuse_for_test ON quota_usage`)
	w.command(ids[0], event.Present, 1)
	w.checkReplay()
}
