package forecast

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics of the forecasts. Those with the label queue have a series for each queue of which
// a workload with an estimate has started.
type Metrics struct {
	took     prometheus.Histogram
	coverage *prometheus.GaugeVec
	off      *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	in := promauto.With(registry)
	return &Metrics{
		took: in.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_estimate_seconds", Help: "Time that it took to estimate when workloads start.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		coverage: in.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_estimate_coverage_ratio",
			Help: "Part of the last 500 estimated workloads of the queue that started by the quantile of their first estimate.",
		}, []string{"queue", "quantile"}),
		off: in.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_estimate_error_seconds",
			Help: "Median time between the start and the p50 of the first estimate, of the last 500 estimated workloads of the queue.",
		}, []string{"queue"}),
	}
}

func (m *Metrics) scored(queue string, last []outcome) {
	var within50, within90 int
	var off []time.Duration
	for _, o := range last {
		if o.within50 {
			within50++
		}
		if o.within90 {
			within90++
		}
		off = append(off, o.off)
	}
	slices.Sort(off)
	m.coverage.WithLabelValues(queue, "0.5").Set(float64(within50) / float64(len(last)))
	m.coverage.WithLabelValues(queue, "0.9").Set(float64(within90) / float64(len(last)))
	m.off.WithLabelValues(queue).Set(off[(len(off)-1)/2].Seconds())
}
