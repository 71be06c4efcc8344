package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// played is a reconciler on a cluster that is played, with a clock that a test sets.
type played struct {
	*Reconciler
	cluster *cluster
	clock   time.Time
	status  event.GangStatus // that was published last
	reports int
}

func newCluster() *cluster {
	return &cluster{
		objects: map[string]*kubernetes.Object{}, items: map[bundle.Identity]*kubernetes.Wrapped{},
		answers: map[string]error{}, owned: map[string][]gang.Pod{},
	}
}

// play returns a reconciler that follows others, which published the statuses.
func play(t *testing.T, before ...event.GangStatus) *played {
	t.Helper()
	return playOn(t, newCluster(), before...)
}

// playOn is play on a cluster that others have worked on.
func playOn(t *testing.T, c *cluster, before ...event.GangStatus) *played {
	t.Helper()
	p := &played{cluster: c, clock: time.Unix(1_700_000_000, 0)}
	report := func(_ context.Context, status event.GangStatus, _ time.Duration) error {
		if err := c.answer("report", string(status.Workload)); err != nil {
			return err
		}
		c.do(func() { p.status, p.reports = status, p.reports+1 })
		return nil
	}
	schedule := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[workload.ID]())
	t.Cleanup(schedule.ShutDown)
	reported := map[workload.ID]event.GangStatus{}
	for _, status := range before {
		reported[status.Workload] = status
		p.status = status
	}
	p.Reconciler = NewSteps(p.cluster, report, reported, zap.NewNop(), NewMetrics(prometheus.NewRegistry()),
		schedule, func() time.Time { return p.clock })
	p.SetCache(p.cluster)
	return p
}

// see looks at the workload the given number of times.
func (p *played) see(t *testing.T, times int) (err error) {
	t.Helper()
	for range times {
		_, err = p.look(t.Context(), "w")
	}
	return err
}

// fail looks at the workload as the queue does, which counts failures.
func (p *played) fail(t *testing.T, times int) {
	t.Helper()
	for range times {
		if p.see(t, 1) != nil {
			p.queue.AddRateLimited("w")
		}
	}
}
