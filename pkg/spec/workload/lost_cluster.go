package workload

import (
	"slices"

	"muster.dev/muster/pkg/spec/fault"
)

// What happens with the gangs of a queue when their cluster is out of reach.
const (
	// StayInLostCluster: they keep their places, because nothing proves that they do not run.
	StayInLostCluster = "stay"
	// FailOver: they may be created and kept for as long as the cluster is permitted to, and
	// start elsewhere once that has run out.
	FailOver = "failover"
)

// ValidateOnLostCluster returns what of the rule cannot be, as a fault.List; empty is
// StayInLostCluster.
func ValidateOnLostCluster(rule string) error {
	var faults fault.List
	if rule != "" && !slices.Contains([]string{StayInLostCluster, FailOver}, rule) {
		faults.Add("", "%q: want %s or %s", rule, StayInLostCluster, FailOver)
	}
	return faults.Err()
}
