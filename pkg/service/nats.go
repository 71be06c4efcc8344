package service

import "github.com/prometheus/client_golang/prometheus"

// NATS is a connection as readiness sees it; a bus.Bus is one.
type NATS interface {
	Ready() error
	Storage() error
}

// AwaitNATS makes the service ready only while NATS is connected and stores what it
// is sent, and shows the latter as a metric.
func (r *Runtime) AwaitNATS(nats NATS) {
	r.Health.Check("nats", nats.Ready)
	r.Health.Check("nats storage", nats.Storage)
	r.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "muster_nats_not_storing", Help: "1 while NATS is connected and stores nothing, as after its disk was full; else 0.",
	}, func() float64 {
		if nats.Storage() != nil {
			return 1
		}
		return 0
	}))
}
