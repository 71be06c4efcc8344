package twin

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/testkit/tally"
	"muster.dev/muster/test/sim"
)

// shared is the server of all tests here, in which each run has a database of its own.
var shared struct {
	once   sync.Once
	server *Server // nil before a test needs it
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
	}
	os.Exit(code)
}

func start(t *testing.T) *Server {
	t.Helper()
	shared.once.Do(func() {
		if shared.server, shared.err = Start(context.Background()); shared.err == nil {
			shared.err = tally.Add(tally.Postgres, tally.Own)
		}
	})
	if errors.Is(shared.err, postgres.ErrNotInstalled) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skipf("no Postgres: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func (s *Server) tables(t *testing.T) *Tables {
	t.Helper()
	tables, err := s.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// What the played ledger stores and refuses, the real tables store and refuse, commit
// by commit.
func TestRealTablesDoAsThePlayedLedger(t *testing.T) {
	t.Parallel()
	server := start(t)
	var sum sim.Compared
	seeds := []uint64{1, 1001, 1005, 1011} // the second changes cohorts, the third is refused something, the last has quota
	for _, seed := range seeds {
		tables := server.tables(t)
		r := sim.Run(sim.Options{Seed: seed, Tables: tables})
		if err := tables.Close(); err != nil {
			t.Error(err)
		}
		if r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
		sum.Commits += r.Compared.Commits
		sum.Refused += r.Compared.Refused
		sum.Looks += r.Compared.Looks
	}
	if sum.Commits < 200 || sum.Refused == 0 || sum.Looks < len(seeds) {
		t.Errorf("only %+v were compared", sum)
	}
	t.Logf("%d seeds: %+v", len(seeds), sum)
}

// Tables that do otherwise than they should are found out.
func TestRealTablesThatDoOtherwiseAreFound(t *testing.T) {
	t.Parallel()
	server := start(t)
	for name, c := range map[string]struct {
		first uint64 // seed that is known to find it; those behind it are tried, too
		plant []string
	}{
		// As a commit that inserts the new places of a gang before it deletes the old ones.
		"places are given back after others are taken": {1011, []string{
			`DROP TRIGGER quota_removed ON reservations`,
			`CREATE FUNCTION give_back_late() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				UPDATE quota_usage u SET used = u.used - OLD.pods * (OLD.requests->>f.key)::bigint
				FROM jsonb_array_elements_text(OLD.charges->'scopes') s (scope), jsonb_each_text(OLD.charges->'flavors') f
				WHERE u.scope = s.scope AND u.flavor = f.value AND u.resource = f.key;
				RETURN NULL;
			END $$`,
			`CREATE CONSTRAINT TRIGGER late AFTER DELETE ON reservations DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW WHEN (OLD.charges IS NOT NULL) EXECUTE FUNCTION give_back_late()`,
		}},
		"quota stays charged to the cohort that a queue has left": {1001, []string{
			`CREATE OR REPLACE FUNCTION charge_quota_resized() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`,
		}},
		"places are not given back": {1, []string{`DROP TRIGGER charge_removed ON reservations`}},
		"an old leader is not refused": {0, []string{`CREATE OR REPLACE FUNCTION assert_leader(mine bigint) RETURNS void LANGUAGE plpgsql AS $$
			BEGIN PERFORM set_config('muster.epoch', (SELECT epoch::text FROM leader), true); END $$`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seeds = 6
			for seed := c.first; seed < c.first+seeds; seed++ {
				tables := server.tables(t)
				for _, statement := range c.plant {
					if err := tables.Owner(statement); err != nil {
						t.Fatal(err)
					}
				}
				r := sim.Run(sim.Options{Seed: seed, Tables: tables})
				if err := tables.Close(); err != nil {
					t.Error(err)
				}
				if r.Breach != nil {
					t.Logf("found in seed %d after %d commits: %.300s", seed, r.Compared.Commits, r.Breach)
					return
				}
			}
			t.Errorf("not found in %d seeds", seeds)
		})
	}
}
