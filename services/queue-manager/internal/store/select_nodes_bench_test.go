package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// BenchmarkNodes selects pages of 10,000 nodes of 8 GPUs, each with a pod of one of 2,000 gangs.
func BenchmarkNodes(b *testing.B) {
	const nodes, each = 10_000, 5
	l := open(b)
	var changes state.Changes
	for i := range nodes {
		changes.Nodes = append(changes.Nodes, state.NodeRow{Node: capacity.Node{
			Cluster: "big", Name: fmt.Sprintf("gpu-%05d", i), Ready: i%100 != 7, Created: time.Unix(1e9, 0).UTC(),
			Labels:      map[string]string{"rack": fmt.Sprint(i / 16), "kubernetes.io/hostname": fmt.Sprintf("gpu-%05d", i), "pool": "a100"},
			Allocatable: resource.List{"cpu": 128_000, "memory": 1 << 40, "pods": 110, "nvidia.com/gpu": 8, "ephemeral-storage": 1 << 40},
		}, Version: event.Version{Session: 1, Seq: uint64(i + 2)}, Present: true})
	}
	l.commit(b, changes)
	changes = state.Changes{}
	for i := range nodes / each {
		of := admitted(int64(i+1), fmt.Sprint("gang-", i), each, 1, 1000)
		one := of.Reserved[0]
		of.Added[0].Record.Cluster = "big"
		of.Added[0].Record.Life.RunTime = workload.Duration(time.Hour)
		of.Reserved = nil
		for k := range each {
			one.Cluster, one.Placement.Node = "big", fmt.Sprintf("gpu-%05d", i*each+k)
			of.Reserved = append(of.Reserved, one)
		}
		changes.Added, changes.Reserved = append(changes.Added, of.Added...), append(changes.Reserved, of.Reserved...)
	}
	l.commit(b, changes)
	conn, err := pgx.Connect(b.Context(), l.url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	if _, err := conn.Exec(b.Context(), `VACUUM ANALYZE nodes, node_resources, reservations, workloads`); err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    query.NodesRequest
		want int
	}{
		"the first page":    {query.NodesRequest{Limit: 100, Holders: true}, 100},
		"a page further on": {query.NodesRequest{Limit: 100, Holders: true, From: query.NodeName{Cluster: "big", Name: "gpu-09000"}}, 100},
		"broken ones":       {query.NodesRequest{Limit: 100, Holders: true, State: query.NodeBroken}, 100},
		"one node":          {query.NodesRequest{Cluster: "big", Name: "gpu-05000", Holders: true}, 1},
		"all":               {query.NodesRequest{}, nodes + 1},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				answer, err := l.Nodes(b.Context(), c.r)
				if err != nil || len(answer.Nodes) != c.want {
					b.Fatalf("%d nodes, %v; want %d", len(answer.Nodes), err, c.want)
				}
			}
		})
	}
}
