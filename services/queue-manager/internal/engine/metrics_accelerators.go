package engine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

// accelerators counts seconds of accelerators while they are held, so that the rate is how many
// are. A sum of what has ended would jump by the hours of a job at its end.
type accelerators struct {
	mu    sync.Mutex
	meter *usage.Meter
	now   func() time.Time
	desc  *prometheus.Desc
}

func newAccelerators(in registrar) *accelerators {
	a := &accelerators{
		meter: usage.NewMeter(mostLabels), now: time.Now,
		desc: prometheus.NewDesc("muster_accelerator_seconds_total", "Seconds of accelerators that workloads held in terms of this process: reserved, running, and wasted (starting, lost or idle).",
			[]string{"queue", "flavor", "cluster", "kind"}, nil),
	}
	in.registry.MustRegister(a)
	return a
}

// Describe implements prometheus.Collector.
func (a *accelerators) Describe(to chan<- *prometheus.Desc) { to <- a.desc }

// Collect implements prometheus.Collector.
func (a *accelerators) Collect(to chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := a.meter.At(a.now())
	for _, of := range usage.SeriesOf(counts) {
		for kind, seconds := range map[string]float64{"reserved": counts[of].Reserved, "running": counts[of].Running, "wasted": counts[of].Wasted} {
			to <- prometheus.MustNewConstMetric(a.desc, prometheus.CounterValue, seconds, of.Queue, of.Flavor, of.Cluster, kind)
		}
	}
}

// begin begins a term, in which workloads hold what they hold now.
func (a *accelerators) begin(now time.Time, held []state.HistoryRow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.meter.Begin(now, held)
}

// observe counts the steps of a commit.
func (a *accelerators) observe(changes state.Changes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range changes.History {
		a.meter.Add(h)
	}
}

// end ends the term.
func (a *accelerators) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.meter.End(a.now())
}
