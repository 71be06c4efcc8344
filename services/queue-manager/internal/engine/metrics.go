package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/state"
)

// Metrics of the engine; none has a label that grows with the load. Labels of queues and clusters
// are bounded.
type Metrics struct {
	terms         *prometheus.CounterVec
	epoch         prometheus.Gauge
	leading       prometheus.Gauge
	waiting       prometheus.Gauge
	started       prometheus.Gauge
	held          prometheus.Gauge
	neverFit      prometheus.Gauge
	admissions    prometheus.Counter
	unreadable    prometheus.Counter
	commits       prometheus.Histogram
	misplaced     prometheus.Gauge
	misplacedEver prometheus.Counter
	growths       prometheus.Counter
	overLimit     prometheus.Counter
	purged        *prometheus.CounterVec
	cut           *prometheus.CounterVec
	searched      prometheus.Counter
	undecided     *prometheus.CounterVec
	decisions     prometheus.Histogram
	asking        prometheus.Gauge
	heard         *prometheus.GaugeVec
	shown         map[state.Part]bool // by heard; the loop of the term alone uses it
	submissions   prometheus.Gauge
	quarantined   prometheus.Gauge
	notStorable   *prometheus.CounterVec
	questions     prometheus.Histogram
	explained     prometheus.Histogram
	recovered     *prometheus.CounterVec
	// oldPrimaries are connections to servers of Postgres that were replaced.
	oldPrimaries prometheus.Counter
	illegal      prometheus.Counter
	// What waiting gangs lack that more nodes would give them.
	unmetGangs, unmetPods prometheus.Gauge
	unmet                 *prometheus.GaugeVec
	queues                *queueMetrics
	accelerators          *accelerators
	clusterState          *prometheus.GaugeVec
	clusterLive           *prometheus.GaugeVec
	budgets               *prometheus.GaugeVec // by budget and queue
	clusters              clusterStates        // shown by clusterState
}

// NewMetrics registers the metrics. Labels that are known begin with zero: Prometheus sees no
// increase in a series that appears with a value, and an alert would miss the first event.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	in := registrar{registry}
	m := &Metrics{}
	m.registerTerms(in)
	m.registerWorkloads(in)
	m.registerDecisions(in)
	m.registerReports(in)
	m.registerRefusals(in)
	return m
}

// registerTerms registers the metrics of the terms of this process as leader.
func (m *Metrics) registerTerms(in registrar) {
	m.terms = in.counters("muster_queue_manager_terms_total", "result",
		"Terms as leader, begun and failed.")
	m.epoch = in.gauge("muster_queue_manager_epoch",
		"Epoch of the last term as leader of this process.")
	m.leading = in.gauge("muster_queue_manager_leading",
		"1 while this process leads, as far as it knows; else 0.")
	m.oldPrimaries = in.counter("muster_old_primary_connections_total",
		"Connections refused because the Postgres server still takes writes although a promoted standby has replaced it.")
	m.recovered = in.counters("muster_recovered_workloads_total", "result",
		"Workloads that the database had forgotten: queued again, removed from clusters, ended, or permanently lost.")
	for _, result := range []string{"begun", "over", "failed"} {
		m.terms.WithLabelValues(result)
	}
	for _, result := range []string{"requeued", "removed", "ended", "lost", "unasked"} {
		m.recovered.WithLabelValues(result)
	}
}

// registerWorkloads registers the metrics of workloads, their pods and their queues.
func (m *Metrics) registerWorkloads(in registrar) {
	m.waiting = in.gauge("muster_workloads_waiting",
		"Workloads waiting in queues.")
	m.started = in.gauge("muster_workloads_started",
		"Workloads that hold or may hold capacity.")
	m.held = in.gauge("muster_queues_held",
		"Queues of which nothing is admitted, because an operator or a stopPolicy holds them.")
	m.neverFit = in.gauge("muster_workloads_never_fit",
		"Waiting workloads that nodes or quota can never admit as they are.")
	m.admissions = in.counter("muster_admissions_total",
		"Gangs admitted.")
	m.growths = in.counter("muster_growths_total",
		"Admissions of more pods of running gangs.")
	m.misplaced = in.gauge("muster_pods_beside_plan",
		"Pods on other nodes than are reserved for them.")
	m.misplacedEver = in.counter("muster_pods_beside_plan_total",
		"Pods that were bound to other nodes than are reserved for them.")
	m.illegal = in.counter("muster_illegal_transitions_total",
		"Changes of a workload's phase that its life cycle forbids.")
	m.unmetGangs = in.gauge("muster_unmet_gangs",
		"Waiting gangs that are within quota and have no places on the nodes that exist; on the leader.")
	m.unmetPods = in.gauge("muster_unmet_pods",
		"Pods of these gangs.")
	m.unmet = in.gauges("muster_unmet_requests", []string{"resource"},
		"What the pods of these gangs request, of the first 100 different gangs and 20 resources: cores of CPU, bytes, devices.")
	m.queues = newQueueMetrics(in)
	m.accelerators = newAccelerators(in)
	m.budgets = in.gauges("muster_budget_used_ratio", []string{"budget", "queue"},
		"Part of the budget of a queue that is used in the present period; on the leader.")
}

// registerDecisions registers the metrics of decisions: how long they take, and what they
// search.
func (m *Metrics) registerDecisions(in registrar) {
	m.commits = in.seconds("muster_batch_seconds", 0.0005, 14,
		"Time from receiving a batch to its commit.")
	m.decisions = in.seconds("muster_decision_seconds", 0.0005, 16,
		"Time from receiving a batch until it was decided, before it is written.")
	m.searched = in.counter("muster_search_steps_total",
		"Steps of exact searches for places and for gangs to evict.")
	m.undecided = in.counters("muster_searches_undecided_total", "because",
		"Searches that ended without an answer: their own budget was spent, or they were put off because their queue had used up what it may take.")
	m.questions = in.seconds("muster_explain_handover_seconds", 0.00005, 16,
		"Time that a question of why a workload waits takes of the leader's goroutine.")
	m.explained = in.seconds("muster_explain_seconds", 0.001, 14,
		"Time to answer why a workload waits, beside the leader's goroutine.")
	for _, because := range []string{undecidedBudget, undecidedQueue} {
		m.undecided.WithLabelValues(because)
	}
}

// registerReports registers the metrics of what clusters and clients send, and of silences.
func (m *Metrics) registerReports(in registrar) {
	m.unreadable = in.counter("muster_unreadable_messages_total",
		"Messages dropped because they could not be read.")
	m.overLimit = in.counter("muster_observations_over_limit_total",
		"Observations that were dropped because their cluster reported more nodes or pods than one cluster may have.")
	m.purged = in.counters("muster_observations_purged_total", "cluster",
		"Times that all observations of a cluster were purged from a stream, because they were more than one cluster may have.")
	m.cut = in.counters("muster_history_dropped_total", "stream",
		"Messages dropped from a nearly full stream of history because their queue had most there.")
	m.asking = in.gauge("muster_questions_open",
		"Workloads and nodes about which queue-manager has asked a watcher or dispatcher for a new report.")
	m.heard = in.gauges("muster_heard_seconds", []string{"cluster", "part"},
		"Seconds since the last report of the watcher or dispatcher of a cluster that something waits for; on the leader.")
	m.submissions = in.gauge("muster_submissions_waiting_seconds",
		"Seconds that the oldest submission has waited for intake; on the leader.")
	m.clusterState = in.gauges("muster_cluster_state", []string{"cluster", "state"},
		"1 for the state of the cluster: ready, silent, returning, cordoned, draining, drained, leaving, left or \"no nodes\"; on the leader.")
	m.clusterLive = in.gauges("muster_cluster_workloads", []string{"cluster"},
		"Workloads that hold places in the cluster; on the leader.")
}

// registerRefusals registers the metrics of what the database refuses to store.
func (m *Metrics) registerRefusals(in registrar) {
	m.quarantined = in.gauge("muster_quarantined",
		"Workloads, nodes and quota that are kept out of decisions because the database refuses to store what was decided about them.")
	m.notStorable = in.counters("muster_not_storable_total", "what",
		"What the database refused to store, by its kind.")
	for _, what := range []string{"workload", "node", "quota", "submission", "message", "record", "configuration", "past usage", "learned", "mark", "outbox"} {
		m.notStorable.WithLabelValues(what)
	}
}

// registrar makes metrics and registers them.
type registrar struct{ registry *prometheus.Registry }

func (r registrar) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.registry.MustRegister(c)
	return c
}

func (r registrar) counters(name, label, help string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	r.registry.MustRegister(c)
	return c
}

func (r registrar) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.registry.MustRegister(g)
	return g
}

func (r registrar) gauges(name string, labels []string, help string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.registry.MustRegister(g)
	return g
}

// seconds makes a histogram of durations: buckets that double, the first up to least.
func (r registrar) seconds(name string, least float64, buckets int, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(least, 2, buckets)})
	r.registry.MustRegister(h)
	return h
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

func (m *Metrics) observe(changes state.Changes, took time.Duration) {
	m.commits.Observe(took.Seconds())
	gangs := map[string]bool{}
	for _, r := range changes.Reserved {
		gangs[string(r.Workload)] = true
	}
	m.admissions.Add(float64(len(gangs)))
	m.growths.Add(float64(changes.Grown))
	m.queues.observe(changes)
	m.accelerators.observe(changes)
}
