package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Where the database refuses places to every workload, the node is to blame; where it refuses
// charges, no gang fails for it.
func TestWhoIsToBlameForRefusedPlaces(t *testing.T) {
	t.Parallel()
	type blamed struct {
		part store.Part
		name string // of a node, a scope of quota or a gang
	}
	starts := event.WorkloadID("test", "starts")
	for name, c := range map[string]struct {
		table, events, condition string
		want                     []blamed
	}{
		"the room of a node": {"node_resources", "UPDATE OF reserved", "NEW.node = 'n'", []blamed{{store.PartPlaces, "n"}}},
		"a place on a node":  {"reservations", "INSERT", "NEW.node = 'n'", []blamed{{store.PartPlaces, "n"}}},
		"the use of a quota": {"quota_usage", "UPDATE OF used", "NEW.scope = 'cohort all'", []blamed{
			{store.PartCharges, "cohort all"}, {store.PartCharges, "cohort all"}, {store.PartCharges, "cohort all"},
		}},
		"the places of a gang": {"reservations", "INSERT", fmt.Sprintf("NEW.workload = '%s'", starts), []blamed{{store.PartPlaces, "starts"}}},
		"the size of a gang":   {"reservations", "INSERT", "NEW.pods > 1", []blamed{{store.PartPlaces, "starts"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			l.withQuota(t, "10")
			l.node(t, "m", 4000)
			changes := charged(1, "starts", 2, 100)
			for i, name := range []string{"also", "other"} {
				more := charged(int64(i+2), name, 1, 100)
				if name == "other" {
					more.Reserved[0].Node = "m"
				}
				changes.Added, changes.Reserved = append(changes.Added, more.Added...), append(changes.Reserved, more.Reserved...)
			}
			changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
			l.refuse(t, c.table, c.events, c.condition, "XX123")
			refused, err := l.Probe(t.Context(), changes, store.Record{}, "")
			if err != nil {
				t.Fatal(err)
			}
			var got []blamed
			for _, r := range refused {
				name := cmp.Or(r.Node.Name, r.Scope)
				for _, a := range changes.Added {
					if name == "" && a.ID == r.Workload {
						name = a.Name
					}
				}
				got = append(got, blamed{r.Part, name})
			}
			slices.SortFunc(got, func(x, y blamed) int { return strings.Compare(x.name, y.name) })
			if !slices.Equal(got, c.want) {
				t.Errorf("to blame are %v, want %v: %+v", got, c.want, refused)
			}
			if version := l.version(t); version != changes.Version-1 {
				t.Errorf("the probe has written: the ledger is at %d", version)
			}
		})
	}
}
