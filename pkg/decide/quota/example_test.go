package quota_test

import (
	"fmt"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Two queues of a cohort: what one does not use, the other may borrow.
func ExampleTree() {
	quotaOf := func(gpus int64) []quota.ResourceGroup {
		return []quota.ResourceGroup{{
			CoveredResources: []resource.Name{"nvidia.com/gpu"},
			Flavors: []quota.FlavorQuotas{{
				Name:      "a100",
				Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: gpus}},
			}},
		}}
	}
	tree, err := quota.New(quota.Config{
		Flavors: []quota.Flavor{{Name: "a100"}},
		ClusterQueues: []quota.ClusterQueue{
			{Name: "vision", Cohort: "research", ResourceGroups: quotaOf(8)},
			{Name: "language", Cohort: "research", ResourceGroups: quotaOf(8)},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	gpus := quota.FlavorResource{Flavor: "a100", Resource: "nvidia.com/gpu"}
	vision := tree.Queue("vision")
	fmt.Println("available:", vision.Available(gpus))
	charges := []quota.Charge{{FlavorResource: gpus, Amount: 12}}
	fmt.Println("borrows:", vision.Borrows(charges))
	vision.Allocate(charges)
	fmt.Println("left for language:", tree.Queue("language").Available(gpus))
	// Output:
	// available: 16
	// borrows: true
	// left for language: 4
}

// A gang may use either flavor. The one within quota comes first, with a reason why the
// other is not.
func ExampleQueue_Assess() {
	tree, err := quota.New(quota.Config{
		Flavors: []quota.Flavor{{Name: "reserved"}, {Name: "spot"}},
		ClusterQueues: []quota.ClusterQueue{{Name: "research", ResourceGroups: []quota.ResourceGroup{{
			CoveredResources: []resource.Name{"nvidia.com/gpu"},
			Flavors: []quota.FlavorQuotas{
				{Name: "reserved", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: 4}}},
				{Name: "spot", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: 16}}},
			},
		}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := tree.Queue("research")
	assignments, _, _ := queue.Assignments([]workload.PodSet{{
		Name: "workers", Role: workload.RoleWorker, Count: 8,
		Template: workload.Template{Requests: resource.List{"nvidia.com/gpu": 1}},
	}})
	for _, a := range queue.Assess(assignments) {
		charge := a.Charges[0]
		fmt.Println(charge.Amount, "of", charge.Flavor, "within quota:", a.Mode == quota.Within)
		if a.Over != nil {
			fmt.Println(" ", a.Over.Reason().Message)
		}
	}
	// Output:
	// 8 of spot within quota: true
	// 8 of reserved within quota: false
	//   insufficient maximum quota for nvidia.com/gpu in flavor "reserved" of queue "research": requested 8, maximum 4 (limited by nominalQuota of clusterQueue research); request less or raise the quota
}
