package publish

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts observed and published things.
type Metrics struct {
	seen      *prometheus.GaugeVec
	published prometheus.Counter
	failures  prometheus.Counter
	lost      prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		seen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_capacity_seen", Help: "Observed nodes, unmanaged pods that use resources, and workloads with pods, as last published.",
		}, []string{"what"}),
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_capacity_published_total", Help: "Observations of nodes and gangs that the bus has stored.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_capacity_publish_failures_total", Help: "Failed attempts to publish. They are repeated, except of what is larger than NATS accepts.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_capacity_lost_total", Help: "Observations that the stream had lost and that were republished.",
		}),
	}
	registry.MustRegister(m.seen, m.published, m.failures, m.lost)
	return m
}

func (m *Metrics) sizes(nodes, unmanaged, gangs int) {
	m.seen.WithLabelValues("nodes").Set(float64(nodes))
	m.seen.WithLabelValues("unmanaged-pods").Set(float64(unmanaged))
	m.seen.WithLabelValues("gangs").Set(float64(gangs))
}
