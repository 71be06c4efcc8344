package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// What should pass by waiting is refused to one workload only: it is to blame once it is asked
// for, and what is refused for good is found beside it.
func TestWhatDoesNotPassIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		passing string
		refused bool
	}{
		"the SQLSTATE is looked for": {"57014", true},
		"another one is":             {"40001", false},
		"none is":                    {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			changes, bad, good := life(t, l)
			l.refuse(t, "history_rest", "INSERT", fmt.Sprintf("NEW.workload = '%s'", bad), "57014")
			refused, err := l.Probe(t.Context(), changes, store.Record{}, c.passing)
			if found := len(refused) == 1 && refused[0].Workload == bad && refused[0].Part == store.PartHistory; found != c.refused || (err == nil) != c.refused {
				t.Errorf("the probe finds %+v, %v", refused, err)
			}
			l.refuse(t, "manifests", "INSERT", fmt.Sprintf("NEW.workload = '%s'", good), "XX123")
			if refused, err := l.Probe(t.Context(), changes, store.Record{}, c.passing); err != nil || len(refused) != 1 || refused[0].Workload != good {
				t.Errorf("beside what is refused for good the probe finds %+v, %v", refused, err)
			}
		})
	}
}

// A statement about one workload takes longer than statements may, whatever is asked beside it.
func TestWhatTakesTooLongIsFound(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes, bad, _ := life(t, l)
	_, err := l.connect(t).Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
		CREATE TRIGGER wait_for_test BEFORE INSERT ON reservations FOR EACH ROW WHEN (NEW.workload = '%s') EXECUTE FUNCTION wait_for_test()`, bad))
	if err != nil {
		t.Fatal(err)
	}
	timeouts := store.DefaultTimeouts()
	timeouts.Statement = 500 * time.Millisecond
	hasty, err := store.Open(t.Context(), l.service, timeouts)
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	_, err = hasty.Commit(t.Context(), changes)
	code := store.Passing(err)
	if code != "57014" {
		t.Fatalf("the commit returned %v", err)
	}
	if refused, err := hasty.Probe(t.Context(), changes, store.Record{}, code); err != nil || len(refused) != 1 || refused[0].Workload != bad {
		t.Errorf("the probe finds %+v, %v", refused, err)
	}
}

// A commit that Postgres cancels is sent once more, and no more often.
func TestACancelledCommitIsSentOnceMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code            string
		times, attempts int
	}{
		"a statement that took too long once": {"57014", 1, 2},
		"a deadlock":                          {"40P01", 1, 2},
		"a lock that comes too late":          {"55P03", 1, 2},
		"a statement that takes too long":     {"57014", 5, 2},
		"a full disk":                         {"53100", 1, 1},
		"a refusal for good":                  {"XX123", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			owner := l.connect(t)
			_, err := owner.Exec(t.Context(), fmt.Sprintf(`CREATE SEQUENCE attempts_for_test;
				CREATE FUNCTION refuse_first_for_test() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
				BEGIN IF nextval('attempts_for_test') <= %d THEN RAISE EXCEPTION 'refused by the test' USING ERRCODE = '%s'; END IF; RETURN NULL; END $$;
				CREATE TRIGGER refuse_first_for_test BEFORE INSERT ON manifests FOR EACH STATEMENT EXECUTE FUNCTION refuse_first_for_test()`, c.times, c.code))
			if err != nil {
				t.Fatal(err)
			}
			changes := admitted(1, "gang", 1, 1, 100)
			changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
			_, err = l.Commit(t.Context(), changes)
			var refused *pgconn.PgError
			if stored := c.times < c.attempts; stored != (err == nil) || !stored && (!errors.As(err, &refused) || refused.Code != c.code) {
				t.Errorf("the commit returned %v", err)
			}
			var attempts int
			if err := owner.QueryRow(t.Context(), `SELECT last_value FROM attempts_for_test`).Scan(&attempts); err != nil || attempts != c.attempts {
				t.Errorf("it was sent %d times, %v; want %d", attempts, err, c.attempts)
			}
			if version, want := l.version(t), changes.Version; (version == want) != (err == nil) {
				t.Errorf("the ledger is at version %d, the commit of version %d returned %v", version, want, err)
			}
		})
	}
}
