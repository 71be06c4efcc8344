package forecast

import (
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
	result := summed(last)
	m.coverage.WithLabelValues(queue, "0.5").Set(result.P50Coverage)
	m.coverage.WithLabelValues(queue, "0.9").Set(result.P90Coverage)
	m.off.WithLabelValues(queue).Set(result.MedianErrorSeconds)
}
