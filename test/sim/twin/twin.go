// Package twin gives the simulation real tables beside its played ledger: a Postgres
// server with the schema, in which each run has a database of its own.
//
// It is for the simulation only. It decides and compares nothing.
package twin

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// Server makes databases with the schema.
type Server struct {
	local *postgres.Server
	made  chan int // the number of the next database
}

// template is the database from which the others are made.
const template = "twin"

// Start starts a server whose data is not kept. The error wraps
// postgres.ErrNotInstalled where there is no Postgres.
func Start(ctx context.Context) (*Server, error) {
	local, err := postgres.Start(ctx, postgres.Options{NoFsync: true})
	if err != nil {
		return nil, fmt.Errorf("start a server for real tables: %w", err)
	}
	s := &Server{local: local, made: make(chan int, 1)}
	s.made <- 1
	url, err := local.CreateDatabase(ctx, template, "template1")
	if err == nil {
		_, err = simhooks.Migrate(ctx, url)
	}
	if err != nil {
		local.Stop()
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	return s, nil
}

// Stop ends the server.
func (s *Server) Stop() { s.local.Stop() }

// Tables makes a database. Close gives it back.
func (s *Server) Tables(ctx context.Context) (*Tables, error) {
	number := <-s.made // one after the other: a template may have no other user
	defer func() { s.made <- number + 1 }()
	name := fmt.Sprintf("%s_%d", template, number)
	url, err := s.local.CreateDatabase(ctx, name, template)
	if err != nil {
		return nil, fmt.Errorf("make real tables: %w", err)
	}
	owner, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to real tables: %w", err)
	}
	return &Tables{ctx: ctx, server: s, name: name, url: url, owner: owner}, nil
}

// Tables are those of one run. They implement sim.Tables.
type Tables struct {
	ctx       context.Context
	server    *Server
	name, url string
	owner     *pgx.Conn
	triggers  []string // that are there, as DROP names them
}

// Close removes the tables.
func (t *Tables) Close() error {
	_ = t.owner.Close(t.ctx) // what it did is thrown away
	admin, err := pgx.Connect(t.ctx, t.server.local.URL())
	if err != nil {
		return fmt.Errorf("remove real tables: %w", err)
	}
	defer func() { _ = admin.Close(t.ctx) }()
	if _, err := admin.Exec(t.ctx, "DROP DATABASE "+t.name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("remove real tables: %w", err)
	}
	return nil
}

// Store opens the tables as queue-manager does.
func (t *Tables) Store() (*simhooks.Store, error) {
	return simhooks.OpenStore(t.ctx, t.url+separator(t.url)+"pool_max_conns=2", simhooks.DefaultTimeouts())
}

func separator(url string) string {
	for _, letter := range url {
		if letter == '?' {
			return "&"
		}
	}
	return "?"
}

// Owner does something as the owner of the tables.
func (t *Tables) Owner(statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	if _, err := t.owner.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// where is into which table a part goes, and how a row of a workload is known.
var where = map[simhooks.Part][2]string{
	simhooks.PartAdded: {"workloads", "NEW.id = '%s'"}, simhooks.PartPlaces: {"reservations", "NEW.workload = '%s'"},
	simhooks.PartEnd: {"archive", "NEW.id = '%s'"}, simhooks.PartHistory: {"history", "NEW.workload = '%s'"},
	simhooks.PartMessage: {"outbox", "position('%s' IN NEW.subject) > 0"},
}

// Refuse has the tables refuse rows of a workload, for good, with an SQLSTATE.
func (t *Tables) Refuse(part simhooks.Part, id workload.ID, code string) error {
	table, condition := where[part][0], fmt.Sprintf(where[part][1], id)
	name := fmt.Sprintf("refuse_%d", len(t.triggers)+1)
	t.triggers = append(t.triggers, name+" ON "+table)
	if err := t.Owner(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'refused for the simulation' USING ERRCODE = '%s'; END $$`, name, code)); err != nil {
		return err
	}
	return t.Owner(fmt.Sprintf(`CREATE TRIGGER %s BEFORE INSERT ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION %s()`, name, table, condition, name))
}

// Mend has the tables refuse nothing more.
func (t *Tables) Mend() error {
	for _, trigger := range t.triggers {
		if err := t.Owner("DROP TRIGGER " + trigger); err != nil {
			return err
		}
	}
	return nil
}
