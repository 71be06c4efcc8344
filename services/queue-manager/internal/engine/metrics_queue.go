package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/usage"
)

// Others is the label of all queues beyond the first mostLabels.
const Others = usage.Others

// mostLabels bounds the queues, the clusters and the flavors that have series of their own.
const mostLabels = 500

// queueMetrics count by queue, cluster and flavor. The loop of the term alone uses them.
type queueMetrics struct {
	queues, clusters, flavors *tallies
	// evicting has the workloads whose eviction is counted and goes on.
	evicting map[workload.ID]bool
}

// tallies count what happens to gangs by one label, whose values are bounded.
type tallies struct {
	admitted, evictions *prometheus.CounterVec
	waits               *prometheus.HistogramVec
	names               map[string]bool // that have series of their own
}

func newQueueMetrics(in registrar) *queueMetrics {
	return &queueMetrics{
		queues: &tallies{
			admitted:  in.counters("muster_queue_admissions_total", "queue", "Gangs admitted, by queue."),
			evictions: in.evictions("muster_evictions_total", "queue", "Evictions, by queue and reason."),
			waits:     in.waits("muster_admission_wait_seconds", "queue", "Time from the submission to the first admission, by queue."),
			names:     map[string]bool{},
		},
		clusters: &tallies{
			admitted:  in.counters("muster_cluster_admissions_total", "cluster", "Gangs admitted, by cluster."),
			evictions: in.evictions("muster_cluster_evictions_total", "cluster", "Evictions, by cluster and reason."),
			waits:     in.waits("muster_cluster_admission_wait_seconds", "cluster", "Time from the submission to the first admission, by cluster."),
			names:     map[string]bool{},
		},
		flavors: &tallies{
			admitted:  in.counters("muster_flavor_admissions_total", "flavor", "Gangs admitted, by each flavor that they are charged from."),
			evictions: in.evictions("muster_flavor_evictions_total", "flavor", "Evictions, by each flavor that the gang is charged from and by reason."),
			waits:     in.waits("muster_flavor_admission_wait_seconds", "flavor", "Time from the submission to the first admission, by each flavor that the gang is charged from."),
			names:     map[string]bool{},
		},
		evicting: map[workload.ID]bool{},
	}
}

// evictions makes a counter of evictions by a label and reason.
func (r registrar) evictions(name, label, help string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label, "reason"})
	r.registry.MustRegister(c)
	return c
}

// waits makes a histogram of waits by a label.
func (r registrar) waits(name, label, help string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.1, 4, 12)}, []string{label})
	r.registry.MustRegister(h)
	return h
}

// admit counts an admission; since is the submission at the first one, else zero.
func (t *tallies) admit(name string, at, since time.Time) {
	label := labelled(t.names, name)
	t.admitted.WithLabelValues(label).Inc()
	if !since.IsZero() {
		t.waits.WithLabelValues(label).Observe(max(0, at.Sub(since).Seconds()))
	}
}

// evict counts an eviction.
func (t *tallies) evict(name, reason string) {
	t.evictions.WithLabelValues(labelled(t.names, name), reason).Inc()
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
		switch {
		case h.Phase == workload.Admitted && reserved[h.Workload]:
			m.queues.admit(h.Usage.Queue, h.At, h.Usage.Since)
			m.clusters.admit(h.Cluster, h.At, h.Usage.Since)
			for _, flavor := range flavorsOf(h.Usage) {
				m.flavors.admit(flavor, h.At, h.Usage.Since)
			}
		case h.Phase == workload.Evicting && !m.evicting[h.Workload]:
			m.evicting[h.Workload] = true
			reason := ""
			if h.Reason != nil {
				reason = string(h.Reason.Kind)
			}
			m.queues.evict(h.Usage.Queue, reason)
			m.clusters.evict(h.Cluster, reason)
			for _, flavor := range flavorsOf(h.Usage) {
				m.flavors.evict(flavor, reason)
			}
		}
	}
}

// flavorsOf are the flavors of what a gang holds; none without quota.
func flavorsOf(u *workload.UsageStep) []string {
	var flavors []string
	for _, held := range u.Held {
		if held.Flavor != "" {
			flavors = append(flavors, held.Flavor)
		}
	}
	return flavors
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
