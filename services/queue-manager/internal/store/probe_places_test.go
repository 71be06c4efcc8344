package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

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

// A node or a quota that could not be tried may be to blame, so the workload is not.
func TestWhatCannotBeTriedIsNotInnocent(t *testing.T) {
	t.Parallel()
	starts := event.WorkloadID("test", "starts")
	for name, c := range map[string]struct{ table, events, condition, forGood string }{
		"a place on a node": {"reservations", "INSERT", "NEW.node = 'n'", fmt.Sprintf("NEW.workload = '%s'", starts)},
		"the use of a quota": {"quota_usage", "UPDATE OF used", "NEW.scope = 'cohort all'",
			fmt.Sprintf("EXISTS (SELECT FROM workloads WHERE id = '%s' AND phase <> 'queued')", starts)}, // its row is there already
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			l.withQuota(t, "10")
			changes := charged(1, "starts", 2, 100)
			changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
			_, err := l.connect(t).Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION refuse_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN IF %[4]s THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = 'XX123'; END IF;
				RAISE EXCEPTION 'it is locked' USING ERRCODE = '55P03'; END $$;
				CREATE TRIGGER refuse_for_test BEFORE %[2]s ON %[1]s FOR EACH ROW WHEN (%[3]s) EXECUTE FUNCTION refuse_for_test()`,
				c.table, c.events, c.condition, c.forGood))
			if err != nil {
				t.Fatal(err)
			}
			refused, err := l.Probe(t.Context(), changes, store.Record{}, "")
			var locked *pgconn.PgError
			if len(refused) > 0 || !errors.As(err, &locked) || locked.Code != "55P03" {
				t.Errorf("to blame are %+v, %v; want nothing, and what is locked", refused, err)
			}
		})
	}
}
