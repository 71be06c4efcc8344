package forecast

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// mostLabels bounds the queues that have series.
const mostLabels = 500

// Metrics of the forecasts. Those with the label queue have a series for each of the first
// mostLabels queues of which a workload with an estimate has started. The forecaster's loop alone
// uses them.
type Metrics struct {
	queues   map[string]bool // that have series
	took     prometheus.Histogram
	coverage *prometheus.GaugeVec
	off      *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	in := promauto.With(registry)
	return &Metrics{
		queues: map[string]bool{},
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
	if !m.queues[queue] && len(m.queues) >= mostLabels {
		return
	}
	m.queues[queue] = true
	result := summed(last)
	m.coverage.WithLabelValues(queue, "0.5").Set(result.P50Coverage)
	m.coverage.WithLabelValues(queue, "0.9").Set(result.P90Coverage)
	m.off.WithLabelValues(queue).Set(result.MedianErrorSeconds)
}
