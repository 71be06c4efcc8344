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
	var clusters, names, observed, reported []string
	var sessions, seqs []int64
	var present []bool
	var ofCluster, ofNode, resources []string // one of each for a resource of a node
	var allocatable, used []int64
	for i, row := range rows {
		clusters, names, observed = append(clusters, row.Cluster), append(names, row.Name), append(observed, encoded(row.Node))
		sessions, seqs = append(sessions, row.Version.Session), append(seqs, int64(row.Version.Seq))
		present = append(present, row.Present)
		its := row.Allocatable.Max(row.Used).Names()
		reported = append(reported, encoded(its))
		for _, name := range its {
			ofCluster, ofNode, resources = append(ofCluster, clusters[i]), append(ofNode, names[i]), append(resources, string(name))
			allocatable, used = append(allocatable, row.Allocatable[name]), append(used, row.Used[name])
		}
	}
	batch.Queue(`INSERT INTO nodes (cluster, name, session, seq, present, observed)
		SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $6::jsonb[])
		ON CONFLICT (cluster, name) DO UPDATE SET session = excluded.session, seq = excluded.seq,
			present = excluded.present, observed = excluded.observed`,
		clusters, names, sessions, seqs, present, observed)
	// A resource that the node does not report any more stays while it is reserved. Each
	// node brings its own resources: a join of all nodes with all resources would grow with
	// the square of the nodes, whatever plan Postgres takes.
	batch.Queue(`UPDATE node_resources r SET allocatable = 0, used = 0
		FROM unnest($1::text[], $2::text[], $3::jsonb[]) AS n (cluster, node, reported)
		WHERE r.cluster = n.cluster AND r.node = n.node AND (r.allocatable <> 0 OR r.used <> 0) AND NOT n.reported ? r.resource`,
		clusters, names, reported)
	batch.Queue(`INSERT INTO node_resources AS r (cluster, node, resource, allocatable, used)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
		ON CONFLICT (cluster, node, resource) DO UPDATE SET allocatable = excluded.allocatable, used = excluded.used
		WHERE r.allocatable <> excluded.allocatable OR r.used <> excluded.used`,
		ofCluster, ofNode, resources, allocatable, used)
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
