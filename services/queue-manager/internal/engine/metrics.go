package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/book"
)

// Metrics of the engine; none has a label that grows with the load.
type Metrics struct {
	terms      *prometheus.CounterVec
	epoch      prometheus.Gauge
	leading    prometheus.Gauge
	waiting    prometheus.Gauge
	started    prometheus.Gauge
	admissions prometheus.Counter
	unreadable prometheus.Counter
	commits    prometheus.Histogram
	beside     prometheus.Gauge
	besideEver prometheus.Counter
	growths    prometheus.Counter
	tooMuch    prometheus.Counter
	searched   prometheus.Counter
	undecided  *prometheus.CounterVec
	decisions  prometheus.Histogram
	asking     prometheus.Gauge
	aside      prometheus.Gauge
	setAside   *prometheus.CounterVec
	questions  prometheus.Histogram
	explained  prometheus.Histogram
	recovered  *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	m := &Metrics{
		terms: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_queue_manager_terms_total", Help: "Terms as leader, begun and failed.",
		}, []string{"result"}),
		epoch: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_queue_manager_epoch", Help: "Epoch of the last term as leader of this process.",
		}),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_queue_manager_leading", Help: "1 while this process leads, as far as it knows; else 0.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_workloads_waiting", Help: "Workloads waiting in queues.",
		}),
		started: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_workloads_started", Help: "Workloads that hold or may hold capacity.",
		}),
		admissions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_admissions_total", Help: "Gangs admitted.",
		}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_unreadable_messages_total", Help: "Messages dropped because they could not be read.",
		}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_batch_seconds", Help: "Time from taking in a batch to its commit.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
	}
	m.beside = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_pods_beside_plan", Help: "Pods on other nodes than are reserved for them.",
	})
	m.besideEver = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_pods_beside_plan_total", Help: "Pods that were bound to other nodes than are reserved for them.",
	})
	m.growths = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_growths_total", Help: "Admissions of more pods of running gangs.",
	})
	m.tooMuch = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_observations_over_limit_total", Help: "Observations that were not taken in because their cluster told of more nodes or pods than one cluster may have.",
	})
	registry.MustRegister(m.tooMuch)
	m.searched = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_search_steps_total", Help: "Steps of exact searches for places and for gangs to evict.",
	})
	m.undecided = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_searches_undecided_total",
		Help: "Searches that ended without an answer: their own budget was spent, or they were put off because their queue had used up what it may take.",
	}, []string{"because"})
	for _, because := range []string{undecidedBudget, undecidedQueue} {
		m.undecided.WithLabelValues(because)
	}
	m.decisions = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "muster_decision_seconds", Help: "Time from taking in a batch until it was decided, before it is written.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	})
	m.questions = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "muster_explain_handover_seconds", Help: "Time that a question of why a workload waits takes of the leader's goroutine.",
		Buckets: prometheus.ExponentialBuckets(0.00005, 2, 16),
	})
	m.explained = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "muster_explain_seconds", Help: "Time to answer why a workload waits, beside the leader's goroutine.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	})
	registry.MustRegister(m.questions, m.explained)
	registry.MustRegister(m.searched, m.undecided, m.decisions)
	m.asking = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_questions_open", Help: "Workloads and nodes of which watcher or dispatcher were asked to say once more what they know.",
	})
	m.aside = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "muster_quarantined", Help: "Workloads and nodes that are kept out of decisions because the database refuses to store what was decided about them.",
	})
	m.setAside = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_not_storable_total", Help: "What the database refused to store, and was set aside: workloads, nodes, submissions, other messages, records of decisions, configurations.",
	}, []string{"what"})
	registry.MustRegister(m.aside, m.setAside, m.beside, m.besideEver, m.growths, m.asking)
	m.recovered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_recovered_workloads_total",
		Help: "Workloads that the database had forgotten: queued again, removed from clusters, ended, or lost for good.",
	}, []string{"result"})
	for _, result := range []string{"requeued", "removed", "ended", "lost"} {
		m.recovered.WithLabelValues(result)
	}
	registry.MustRegister(m.recovered)
	registry.MustRegister(m.terms, m.epoch, m.leading, m.waiting, m.started, m.admissions, m.unreadable, m.commits)
	return m
}

// Why a search has no answer.
const (
	undecidedBudget = "budget"
	undecidedQueue  = "queue"
)

// count adds what was searched since the last time.
func (m *Metrics) count(now, last admission.Searched) {
	m.searched.Add(float64(now.Steps - last.Steps))
	m.undecided.WithLabelValues(undecidedBudget).Add(float64(now.Undecided - last.Undecided))
	m.undecided.WithLabelValues(undecidedQueue).Add(float64(now.Cut - last.Cut))
}

func (m *Metrics) observe(changes book.Changes, took time.Duration) {
	m.commits.Observe(took.Seconds())
	gangs := map[string]bool{}
	for _, r := range changes.Reserved {
		gangs[string(r.Workload)] = true
	}
	m.admissions.Add(float64(len(gangs)))
	m.growths.Add(float64(changes.Grown))
}
