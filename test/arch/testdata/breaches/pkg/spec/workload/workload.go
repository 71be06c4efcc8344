// Package workload breaks no rule.
package workload

// Workload is nothing.
type Workload struct{}
