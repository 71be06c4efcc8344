package store_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// dumpedSchema is for readers: nothing applies it.
const dumpedSchema = "../../../../docs/schema.sql"

var update = flag.Bool("update", false, "rewrite docs/schema.sql")

const schemaHeader = `-- The ledger's schema as the migrations make it, for readers. Made by
-- go test ./services/queue-manager/internal/store -run Schema -update
`

// noise is what differs from one dump to the next.
var noise = regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)?\n`)

func TestTheDumpedSchemaIsWhatTheMigrationsMake(t *testing.T) {
	t.Parallel()
	// A newer server keeps what an older pg_dump takes for a part of the schema.
	url := testServer.Here(t).Database(t)
	dir, err := postgres.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dump := exec.CommandContext(t.Context(), filepath.Join(dir, "pg_dump"), "--schema-only", "--no-owner",
		"--exclude-table=goose_db_version*", "--dbname", url)
	output, err := dump.CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, output)
	}
	got := schemaHeader + noise.ReplaceAllString(strings.ReplaceAll(string(output), "\n\n", "\n"), "")
	if *update {
		if err := os.WriteFile(dumpedSchema, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(dumpedSchema)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/schema.sql is not what the migrations make: run this test with -update and read the difference")
	}
}

// What the first version of the schema held is there after the others.
func TestMigrationsKeepWhatIsStored(t *testing.T) {
	t.Parallel()
	url := testServer.Empty(t)
	if _, err := store.MigrateTo(t.Context(), url, 1); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), stored0001); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if _, err := store.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), url, store.DefaultTimeouts())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stored, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Workloads) != 2 || stored.LastOrder != 3 {
		t.Fatalf("loaded %+v, want the running and the waiting workload", stored)
	}
	first := stored.Workloads[0]
	if first.Phase != workload.Running || first.Pods() != 2 || len(first.Placements) != 1 || first.Placements[0].Pods != 2 {
		t.Errorf("the running workload is %+v", first)
	}
	known, err := s.Known(t.Context(), []workload.ID{"00000000-0000-0000-0000-000000000003"})
	if err != nil || known["00000000-0000-0000-0000-000000000003"].Phase != workload.Succeeded {
		t.Errorf("of the finished workload is known %+v, %v", known, err)
	}
}

// Workloads that were stored before the migration that keeps labels are selected by them.
func TestMigrationsKeepLabels(t *testing.T) {
	t.Parallel()
	const each = 2500 // more than one step of the migration
	url := testServer.Empty(t)
	if _, err := store.MigrateTo(t.Context(), url, 18); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(`
		BEGIN;
		SELECT assert_leader((SELECT epoch FROM leader));
		INSERT INTO manifests SELECT md5('live' || i)::uuid, json_build_object('metadata', json_build_object('labels', json_build_object('team', 'a', 'n', i::text)))
		FROM generate_series(1, %[1]d) i;
		INSERT INTO archive SELECT md5('ended' || i)::uuid, i, 'q', 'ns', 'w' || i, 'succeeded', '', now(), json_build_object('name', 'w' || i),
			CASE WHEN i > 1 THEN json_build_object('items', json_build_array(json_build_object('object',
				json_build_object('metadata', json_build_object('labels', json_build_object('team', 'b', 'n', i::text)))))) END
		FROM generate_series(1, %[1]d) i;
		COMMIT`, each)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	var live int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM manifests WHERE labels @> '{"team": "a"}' AND labels ? 'n'`).Scan(&live); err != nil || live != each {
		t.Errorf("%d live workloads have their labels, %v; want %d", live, err, each)
	}
	s, err := store.Open(t.Context(), url, store.DefaultTimeouts())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for selector, want := range map[string]string{"team=b,n=2500": "w2500", "team=b,n in (2)": "w2", "!team": "w1"} {
		t.Run(selector, func(t *testing.T) {
			labels, err := query.ParseSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := s.Workloads(t.Context(), query.WorkloadsRequest{Labels: labels})
			if err != nil || len(answer.Workloads) != 1 || answer.Workloads[0].Name != want {
				t.Errorf("%s selects %+v, %v; want %s", selector, answer.Workloads, err, want)
			}
		})
	}
}

// stored0001 is a running, a waiting and a finished workload.
const stored0001 = `
BEGIN;
INSERT INTO queues VALUES ('q', '{ns}', 'BestEffortFIFO');
INSERT INTO nodes VALUES ('c', 'n', 1, 1, true, '{"cluster":"c","name":"n","ready":true,"allocatable":{"cpu":4000}}');
INSERT INTO node_resources VALUES ('c', 'n', 'cpu', 4000, 0, 0);
INSERT INTO workloads (id, submission, queue, namespace, kind, name, priority, digest, pod_sets, manifest, phase, attempt, cluster,
	holding, cancel_requested, submitted_at, finished_at)
SELECT ('00000000-0000-0000-0000-00000000000' || i)::uuid, i, 'q', 'ns', 'RayCluster', 'w' || i, 0, 'd' || i,
	'[{"name":"workers","role":"worker","count":2,"template":{"requests":{"cpu":1000}}}]', '{}',
	(ARRAY['running', 'queued', 'succeeded'])[i], 1, (ARRAY['c', NULL, 'c'])[i], i = 1, false, now(), CASE i WHEN 3 THEN now() END
FROM generate_series(1, 3) i;
INSERT INTO reservations VALUES ('00000000-0000-0000-0000-000000000001', 1, 'c', 'n', 'workers', 2, '', '{"cpu":1000}');
INSERT INTO history (workload, at, epoch, phase, attempt) VALUES ('00000000-0000-0000-0000-000000000001', now(), 1, 'running', 1);
COMMIT;`
