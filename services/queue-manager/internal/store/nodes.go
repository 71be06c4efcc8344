package store

import (
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/state"
)

// queueNodes writes nodes as observed. Rows that have not changed are left
// alone.
func queueNodes(batch *pgx.Batch, rows []state.NodeRow) {
	if len(rows) == 0 {
		return
	}
	var clusters, names, observed []string
	var sessions, seqs []int64
	var present []bool
	var at []int32 // place in clusters and names
	var resources []string
	var allocatable, used []int64
	for i, row := range rows {
		clusters, names, observed = append(clusters, row.Cluster), append(names, row.Name), append(observed, encoded(row.Node))
		sessions, seqs = append(sessions, row.Version.Session), append(seqs, int64(row.Version.Seq))
		present = append(present, row.Present)
		for _, name := range row.Allocatable.Max(row.Used).Names() {
			at, resources = append(at, int32(i+1)), append(resources, string(name))
			allocatable, used = append(allocatable, row.Allocatable[name]), append(used, row.Used[name])
		}
	}
	batch.Queue(`INSERT INTO nodes (cluster, name, session, seq, present, observed)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $6::jsonb[])
		ON CONFLICT (cluster, name) DO UPDATE SET session = excluded.session, seq = excluded.seq,
			present = excluded.present, observed = excluded.observed`,
		clusters, names, sessions, seqs, present, observed)
	// A resource that the node does not report any more stays while it is reserved.
	batch.Queue(`UPDATE node_resources r SET allocatable = 0, used = 0
		FROM unnest($1::text[], $2::text[]) AS n (cluster, node)
		WHERE r.cluster = n.cluster AND r.node = n.node AND (r.allocatable <> 0 OR r.used <> 0) AND NOT EXISTS (
			SELECT FROM unnest($3::int[], $4::text[]) AS a (at, resource)
			WHERE ($1::text[])[a.at] = r.cluster AND ($2::text[])[a.at] = r.node AND a.resource = r.resource)`,
		clusters, names, at, resources)
	batch.Queue(`INSERT INTO node_resources AS r (cluster, node, resource, allocatable, used)
		SELECT ($1::text[])[a.at], ($2::text[])[a.at], a.resource, a.allocatable, a.used
		FROM unnest($3::int[], $4::text[], $5::bigint[], $6::bigint[]) AS a (at, resource, allocatable, used)
		ON CONFLICT (cluster, node, resource) DO UPDATE SET allocatable = excluded.allocatable, used = excluded.used
		WHERE r.allocatable <> excluded.allocatable OR r.used <> excluded.used`,
		clusters, names, at, resources, allocatable, used)
}

// queueDropped removes nodes that are gone and on which nothing is reserved.
func queueDropped(batch *pgx.Batch, rows []state.NodeRow) {
	var clusters, names []string
	for _, row := range rows {
		if row.Drop {
			clusters, names = append(clusters, row.Cluster), append(names, row.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	batch.Queue(`DELETE FROM node_resources WHERE (cluster, node) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, clusters, names)
	batch.Queue(`DELETE FROM nodes WHERE (cluster, name) IN (SELECT * FROM unnest($1::text[], $2::text[]))`, clusters, names)
}
