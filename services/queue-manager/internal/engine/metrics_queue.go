package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Others is the label of all queues beyond the first mostLabels.
const Others = "(others)"

// mostLabels bounds the queues, and the clusters, that have series of their own.
const mostLabels = 500

// queueMetrics count by queue and cluster. The loop of the term alone uses them.
type queueMetrics struct {
	admitted, placed *prometheus.CounterVec
	waits            *prometheus.HistogramVec
	evictions        *prometheus.CounterVec
	queues, clusters map[string]bool
	// evicting has the workloads whose eviction is counted and goes on.
	evicting map[workload.ID]bool
}

func newQueueMetrics(in registrar) *queueMetrics {
	waits := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "muster_admission_wait_seconds", Help: "Time from the submission to the first admission, by queue.",
		Buckets: prometheus.ExponentialBuckets(0.1, 4, 12),
	}, []string{"queue"})
	evictions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_evictions_total", Help: "Evictions, by queue and reason.",
	}, []string{"queue", "reason"})
	in.registry.MustRegister(waits, evictions)
	return &queueMetrics{
		admitted: in.counters("muster_queue_admissions_total", "queue", "Gangs admitted, by queue."),
		placed:   in.counters("muster_cluster_admissions_total", "cluster", "Gangs admitted, by cluster."),
		waits:    waits, evictions: evictions,
		queues: map[string]bool{}, clusters: map[string]bool{}, evicting: map[workload.ID]bool{},
	}
}

// observe counts the steps of a commit.
func (m *queueMetrics) observe(changes state.Changes) {
	reserved := map[workload.ID]bool{}
	for _, r := range changes.Reserved {
		reserved[r.Workload] = true
	}
	for _, h := range changes.History {
		if h.Phase != workload.Evicting {
			delete(m.evicting, h.Workload)
		}
		if h.Usage == nil {
			continue
		}
		queue := labelled(m.queues, h.Usage.Queue)
		switch {
		case h.Phase == workload.Admitted && reserved[h.Workload]:
			m.admitted.WithLabelValues(queue).Inc()
			m.placed.WithLabelValues(labelled(m.clusters, h.Cluster)).Inc()
			if !h.Usage.Since.IsZero() {
				m.waits.WithLabelValues(queue).Observe(max(0, h.At.Sub(h.Usage.Since).Seconds()))
			}
		case h.Phase == workload.Evicting && !m.evicting[h.Workload]:
			m.evicting[h.Workload] = true
			reason := ""
			if h.Reason != nil {
				reason = string(h.Reason.Kind)
			}
			m.evictions.WithLabelValues(queue, reason).Inc()
		}
	}
}

// labelled returns the name, or Others where there are too many names.
func labelled(known map[string]bool, name string) string {
	if !known[name] {
		if len(known) >= mostLabels {
			return Others
		}
		known[name] = true
	}
	return name
}
