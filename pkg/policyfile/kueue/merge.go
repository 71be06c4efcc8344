package kueue

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// Merge is what the objects are together, which may not be valid.
func Merge(objects []Object) quota.Config {
	var all quota.Config
	for _, o := range objects {
		all = Concat(all, o.Policy)
	}
	return all
}

// Concat is a policy with the objects of another one behind its own.
func Concat(policy, other quota.Config) quota.Config {
	policy.Flavors = slices.Concat(policy.Flavors, other.Flavors)
	policy.Cohorts = slices.Concat(policy.Cohorts, other.Cohorts)
	policy.ClusterQueues = slices.Concat(policy.ClusterQueues, other.ClusterQueues)
	policy.LocalQueues = slices.Concat(policy.LocalQueues, other.LocalQueues)
	policy.Priorities = slices.Concat(policy.Priorities, other.Priorities)
	policy.AdmissionChecks = slices.Concat(policy.AdmissionChecks, other.AdmissionChecks)
	policy.ProvisioningConfigs = slices.Concat(policy.ProvisioningConfigs, other.ProvisioningConfigs)
	policy.Topologies = slices.Concat(policy.Topologies, other.Topologies)
	policy.Holds = slices.Concat(policy.Holds, other.Holds)
	policy.Clusters = slices.Concat(policy.Clusters, other.Clusters)
	policy.ClusterCordons = slices.Concat(policy.ClusterCordons, other.ClusterCordons)
	policy.Reservations = slices.Concat(policy.Reservations, other.Reservations)
	policy.Budgets = slices.Concat(policy.Budgets, other.Budgets)
	policy.BudgetHolds = slices.Concat(policy.BudgetHolds, other.BudgetHolds)
	policy.ClusterQueueHolds = slices.Concat(policy.ClusterQueueHolds, other.ClusterQueueHolds)
	return policy
}

// Keys names the objects of a policy.
func Keys(policy quota.Config) map[Key]bool {
	keys := map[Key]bool{}
	for _, key := range elements(policy) {
		keys[key] = true
	}
	return keys
}
