package service

import "github.com/prometheus/client_golang/prometheus"

// NATS is the part of bus.Bus that readiness depends on.
type NATS interface {
	Ready() error
	Storage() error
}

// AwaitNATS makes the service ready only while NATS is connected and stores messages, and
// registers a metric for the latter.
func (r *Runtime) AwaitNATS(nats NATS) {
	r.Health.Check("nats", nats.Ready)
	r.Health.Check("nats storage", nats.Storage)
	r.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_nats_not_storing", Help: "1 while NATS is connected but stores nothing, for example after its disk was full; else 0.",
	}, func() float64 {
		if nats.Storage() != nil {
			return 1
		}
		return 0
	}))
}
