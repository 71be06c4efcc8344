package main

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// clusterNodes are the nodes of all clusters together. A node has room for one gang.
	clusterNodes = 20_000
	// clusterGangs are admitted, and take half of the room.
	clusterGangs = 10_000
	// clusterBatch gangs are submitted and admitted in one transaction.
	clusterBatch = 100
	// nodeBatch nodes are stored in one transaction before the measurement.
	nodeBatch = 1000
)

// compareClusters measures how many gangs are admitted in a second over one cluster and over many
// of together as many nodes.
func compareClusters(ctx context.Context, o options) error {
	server, err := postgres.Start(ctx, postgres.Options{Settings: settings(0)})
	if err != nil {
		return err
	}
	defer server.Stop()
	each := clusterNodes / o.clusters
	fmt.Printf("\n%d gangs of two pods, %d submitted and admitted in a transaction\n", clusterGangs, clusterBatch)
	fmt.Printf("  %-44s %12s %10s %10s %8s\n", "clusters", "admissions/s", "p50", "p99", "ratio")
	alone := 0.0
	for i, c := range []struct {
		name            string
		clusters, nodes int
		priced          bool // each cluster has another price
	}{
		{fmt.Sprintf("1 of %d nodes", clusterNodes), 1, clusterNodes, false},
		{fmt.Sprintf("%d of %d nodes, equally cheap", o.clusters, each), o.clusters, each, false},
		{fmt.Sprintf("%d of %d nodes, each with its price", o.clusters, each), o.clusters, each, true},
	} {
		url, err := server.CreateDatabase(ctx, fmt.Sprintf("clusters_%d", i), "")
		if err != nil {
			return err
		}
		if _, err := store.Migrate(ctx, url); err != nil {
			return err
		}
		s := sites{clusters: c.clusters, nodes: c.nodes, priced: c.priced, record: o.record}
		times, took, err := s.measure(ctx, url)
		if err != nil {
			return fmt.Errorf("measure %s: %w", c.name, err)
		}
		rate := clusterGangs / took.Seconds()
		if alone == 0 {
			alone = rate
		}
		fmt.Printf("  %-44s %12.0f %10s %10s %8.2f\n", c.name, rate, times.quantile(0.5), times.quantile(0.99), rate/alone)
	}
	return nil
}

// sites are clusters with as many nodes each.
type sites struct {
	clusters, nodes int
	priced, record  bool
}

// measure admits the gangs over the clusters, and returns how long the transactions took.
func (s sites) measure(ctx context.Context, url string) (times samples, took time.Duration, err error) {
	var policy quota.Config
	for i := range s.clusters {
		if s.priced {
			policy.Clusters = append(policy.Clusters, quota.Cluster{Name: siteName(i), Cost: quota.Cost{"cpu": int64(1000 + i)}})
		}
	}
	t, err := openTerm(ctx, url, s.record, policy)
	if err != nil {
		return nil, 0, err
	}
	defer t.close()
	if err := s.report(ctx, t); err != nil {
		return nil, 0, err
	}
	manifest := manifestOf()
	return writeWhileDeciding(ctx, clusterGangs, func(at time.Time) (store.Transaction, int, error) {
		for range clusterBatch {
			if err := t.submitOne(manifest, at); err != nil {
				return nil, 0, err
			}
		}
		write, changes, err := t.decide(at)
		if err != nil {
			return nil, 0, err
		}
		placed := 0
		for _, w := range changes.Added {
			if w.Holding {
				placed++
			}
		}
		if placed != clusterBatch {
			return nil, 0, fmt.Errorf("%d of %d gangs were admitted, with room for all", placed, clusterBatch)
		}
		return write, placed, nil
	})
}

// report has the nodes of all clusters come.
func (s sites) report(ctx context.Context, t *term) error {
	for i := range s.clusters * s.nodes {
		t.seq++
		name := fmt.Sprintf("node-%05d", i%s.nodes)
		err := t.apply(&event.NodeObserved{Version: event.Version{Session: t.led.Epoch, Seq: t.seq}, Node: capacity.Node{
			Cluster: siteName(i / s.nodes), Name: name, Ready: true, Labels: map[string]string{capacity.HostnameLabel: name},
			Allocatable: podRequests().Times(2),
		}}, time.Now())
		if err != nil {
			return err
		}
		if (i+1)%nodeBatch == 0 {
			if err := t.commit(ctx); err != nil {
				return fmt.Errorf("store %d nodes: %w", nodeBatch, err)
			}
		}
	}
	return t.commit(ctx)
}

func siteName(i int) string { return fmt.Sprintf("cluster-%02d", i) }
