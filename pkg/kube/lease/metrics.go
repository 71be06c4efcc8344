package lease

import "github.com/prometheus/client_golang/prometheus"

// FailedTerms registers the counter for Options.Failed.
func FailedTerms(registry prometheus.Registerer) prometheus.Counter {
	failed := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "muster_lease_failed_terms_total", Help: "Terms under the Lease that ended with an error and were followed by a retry.",
	})
	registry.MustRegister(failed)
	return failed
}
