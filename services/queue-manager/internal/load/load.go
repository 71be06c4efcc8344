// Package load exports as metrics what queues, ClusterQueues and flavors have: how many wait and
// live, quota and its use, shares.
//
// It reads Postgres beside the term, in any queue-manager, so all processes export the same
// values: take the maximum of them. It is not for what happens, which package engine counts as it
// commits.
package load

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/resource"
)

// Others is the label of all queues, or ClusterQueues, beyond the first mostQueues.
const Others = "(others)"

// Bounds of the series.
const (
	mostQueues = 500
	mostLines  = 5000 // of quota
	// rest is how many times as long as a look took nothing is looked at after it.
	rest = 20
)

// Store is what is read.
type Store interface {
	Queues(ctx context.Context) (query.QueuesAnswer, error)
}

// Collector implements prometheus.Collector with what it saw last.
type Collector struct {
	Store  Store
	Logger *zap.Logger
	// Every is the least time between two looks.
	Every time.Duration

	mu   sync.Mutex
	seen query.QueuesAnswer
}

var (
	queueWorkloads = prometheus.NewDesc("muster_queue_workloads", "Workloads of a queue that wait, or are live: admitted and not ended.", []string{"queue", "state"}, nil)
	quotaAmount    = prometheus.NewDesc("muster_quota", "Quota of a ClusterQueue: nominal, used, borrowed from its cohort, or lent to it. CPU is in cores, memory in bytes.", []string{"cluster_queue", "flavor", "resource", "what"}, nil)
	shareRatio     = prometheus.NewDesc("muster_share_ratio", "Weighted dominant share of a ClusterQueue in its cohort.", []string{"cluster_queue"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueWorkloads, quotaAmount, shareRatio} {
		out <- d
	}
}

// Run reads Postgres until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		seen, err := c.Store.Queues(ctx)
		if err == nil {
			c.mu.Lock()
			c.seen = seen
			c.mu.Unlock()
		} else if ctx.Err() == nil {
			c.Logger.Warn("cannot read the queues for the metrics", zap.Error(err))
		}
		_ = pause.For(ctx, max(c.Every, rest*time.Since(began))) // the loop looks at the context
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	seen := c.seen
	c.mu.Unlock()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	type counts struct{ waiting, live int }
	queues := map[string]counts{}
	for _, q := range seen.Queues { // LocalQueues of one name are one series
		of := queues[q.Name]
		queues[q.Name] = counts{of.waiting + q.Waiting, of.live + q.Live}
	}
	names := slices.SortedFunc(maps.Keys(queues), func(a, b string) int {
		return cmp.Or(cmp.Compare(queues[b].waiting+queues[b].live, queues[a].waiting+queues[a].live), cmp.Compare(a, b))
	})
	var others counts
	for i, name := range names {
		of := queues[name]
		if i >= mostQueues {
			others = counts{others.waiting + of.waiting, others.live + of.live}
			continue
		}
		gauge(queueWorkloads, float64(of.waiting), name, "waiting")
		gauge(queueWorkloads, float64(of.live), name, "live")
	}
	if len(names) > mostQueues {
		gauge(queueWorkloads, float64(others.waiting), Others, "waiting")
		gauge(queueWorkloads, float64(others.live), Others, "live")
	}
	lines := 0
	for i, q := range seen.ClusterQueues {
		if i < mostQueues && q.Cohort != "" && q.Share != quota.MaxShare {
			gauge(shareRatio, float64(q.Share)/1e6, q.Name)
		}
		for _, l := range q.Quota {
			if lines++; lines > mostLines {
				return
			}
			labels := []string{q.Name, l.Flavor, string(l.Resource)}
			gauge(quotaAmount, units(l.Resource, l.Used), append(labels, "used")...)
			if !l.Unbounded {
				gauge(quotaAmount, units(l.Resource, l.Nominal), append(labels, "nominal")...)
				gauge(quotaAmount, units(l.Resource, l.Borrowed), append(labels, "borrowed")...)
				gauge(quotaAmount, units(l.Resource, l.Lent), append(labels, "lent")...)
			}
		}
	}
}

// units is an amount in the unit that people use.
func units(name resource.Name, amount int64) float64 {
	if name == resource.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}
