package reconcile

import "github.com/prometheus/client_golang/prometheus"

// Metrics of the reconciler.
type Metrics struct {
	created                                                                    prometheus.Histogram
	refused, failures, pinned, orphans, forced, leftBehind, unplanned, evicted prometheus.Counter
	strays                                                                     *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		created: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_dispatcher_create_seconds", Help: "Time of the API server for the creation of a gang's object.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		refused:  counter("muster_dispatcher_refused_total", "Objects that Kubernetes or the dispatcher permanently refused."),
		failures: counter("muster_dispatcher_retries_total", "Passes over a workload that failed and are repeated."),
		pinned:   counter("muster_dispatcher_pinned_pods_total", "Pods sent to their reserved node."),
		forced:   counter("muster_dispatcher_forced_pods_total", "Pods deleted by force because they did not end in time."),
		unplanned: counter("muster_dispatcher_unplanned_pods_total",
			"Pods deleted because a workload's object made them without the labels and gates that Muster set."),
		evicted: counter("muster_dispatcher_stray_pods_evicted_total", "Pods deleted because their queue's strayPods is evict."),
		strays: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_dispatcher_stray_pods", Help: "Pods that are not of Muster, in namespaces of queues whose strayPods is warn or evict.",
		}, []string{"namespace"}),
		leftBehind: counter("muster_dispatcher_left_behind_total",
			"Removals and roll-backs given up in favour of the places: objects stay that cannot be removed, but no pod runs."),
		orphans: counter("muster_dispatcher_orphans_removed_total", "Objects removed because no live workload owns them."),
	}
	registry.MustRegister(m.created, m.refused, m.failures, m.pinned, m.orphans, m.forced, m.leftBehind, m.unplanned, m.evicted, m.strays)
	return m
}
