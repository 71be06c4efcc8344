package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

type ledger struct {
	mu     sync.Mutex
	answer query.QueuesAnswer
	err    error
	asked  int
}

func (l *ledger) Queues(context.Context) (query.QueuesAnswer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return l.answer, l.err
}

func (l *ledger) becomes(answer query.QueuesAnswer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer, l.err = answer, err
}

func (l *ledger) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// TestQueuesAreExported: the metrics have what the ledger has, once a queue of two namespaces,
// and an error of the ledger leaves what was seen last.
func TestQueuesAreExported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{answer: query.QueuesAnswer{
			Queues: []query.Queue{{Name: "q", Namespaces: []string{"a"}, Waiting: 3, Live: 1}, {Name: "q", Namespaces: []string{"b"}, Waiting: 4}},
			ClusterQueues: []query.ClusterQueue{
				{Name: "cq", Cohort: "all", Share: 250_000, Quota: []quota.Line{
					{FlavorResource: quota.FlavorResource{Flavor: "f", Resource: "cpu"}, Nominal: 4000, Used: 5500, Borrowed: 1500, Lent: 500},
					{FlavorResource: quota.FlavorResource{Flavor: "f", Resource: "nvidia.com/gpu"}, Used: 8, Unbounded: true},
				}},
				{Name: "alone", Share: 7}, {Name: "without", Cohort: "all", Share: quota.MaxShare},
			},
		}}
		c := &Collector{Store: l, Logger: zap.NewNop(), Every: time.Minute}
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx)
		synctest.Wait()
		want := `
# HELP muster_queue_workloads Workloads of a queue that wait, or are live: admitted and not ended.
# TYPE muster_queue_workloads gauge
muster_queue_workloads{queue="q",state="live"} 1
muster_queue_workloads{queue="q",state="waiting"} 7
# HELP muster_quota Quota of a ClusterQueue: nominal, used, borrowed from its cohort, or lent to it. CPU is in cores, memory in bytes.
# TYPE muster_quota gauge
muster_quota{cluster_queue="cq",flavor="f",resource="cpu",what="borrowed"} 1.5
muster_quota{cluster_queue="cq",flavor="f",resource="cpu",what="lent"} 0.5
muster_quota{cluster_queue="cq",flavor="f",resource="cpu",what="nominal"} 4
muster_quota{cluster_queue="cq",flavor="f",resource="cpu",what="used"} 5.5
muster_quota{cluster_queue="cq",flavor="f",resource="nvidia.com/gpu",what="used"} 8
# HELP muster_share_ratio Weighted dominant share of a ClusterQueue in its cohort.
# TYPE muster_share_ratio gauge
muster_share_ratio{cluster_queue="cq"} 0.25
`
		if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		l.becomes(query.QueuesAnswer{}, errors.New("away"))
		<-time.After(90 * time.Second) // of the clock of the bubble
		if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
			t.Errorf("after an error: %v", err)
		}
		if asked := l.questions(); asked != 2 {
			t.Errorf("the ledger was asked %d times, want 2", asked)
		}
		stop()
		synctest.Wait()
	})
}

// TestSeriesAreBounded: the queues with the least share a series.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	c := &Collector{}
	for i := range 2 * mostQueues {
		c.seen.Queues = append(c.seen.Queues, query.Queue{Name: fmt.Sprintf("q%04d", i), Waiting: 2*mostQueues - i})
		c.seen.ClusterQueues = append(c.seen.ClusterQueues, query.ClusterQueue{Name: fmt.Sprintf("q%04d", i)})
		for k := range 16 {
			of := &c.seen.ClusterQueues[i]
			of.Quota = append(of.Quota, quota.Line{FlavorResource: quota.FlavorResource{Flavor: fmt.Sprint(k), Resource: "cpu"}})
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	gathered, err := registry.Gather()
	if err != nil || len(gathered) != 2 {
		t.Fatalf("%d families of metrics, %v", len(gathered), err)
	}
	for _, family := range gathered {
		if most := map[string]int{"muster_queue_workloads": 2 * (mostQueues + 1), "muster_quota": 4 * mostLines}[family.GetName()]; len(family.GetMetric()) != most {
			t.Errorf("%s has %d series, want %d", family.GetName(), len(family.GetMetric()), most)
		}
	}
}
