package workload

import (
	"slices"

	"muster.dev/muster/pkg/spec/fault"
)

// What happens with pods in the namespaces of a queue that are not of Muster, and with
// those of a gang under trusted placement that have no place.
const (
	CountStrays  = "count" // they count as used on their nodes
	WarnOfStrays = "warn"  // and a warning is logged
	EvictStrays  = "evict" // and are deleted within seconds
)

// ValidateStrays returns what of the rule cannot be, as a fault.List; empty is
// CountStrays.
func ValidateStrays(rule string) error {
	var faults fault.List
	if rule != "" && !slices.Contains([]string{CountStrays, WarnOfStrays, EvictStrays}, rule) {
		faults.Add("", "%q: want %s, %s or %s", rule, CountStrays, WarnOfStrays, EvictStrays)
	}
	return faults.Err()
}

// Stricter returns the stricter of two rules for strays.
func Stricter(a, b string) string {
	for _, rule := range []string{EvictStrays, WarnOfStrays} {
		if a == rule || b == rule {
			return rule
		}
	}
	return CountStrays
}
