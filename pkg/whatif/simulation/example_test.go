package simulation_test

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/swf"
)

// On four nodes a long job of two, then one of four, then a short one of two: only
// backfill lets the short one run beside the long one.
func ExampleRun() {
	log, err := swf.Read(strings.NewReader(`1 0 -1 1000 2 -1 -1 2 1000 -1 1 1 1 -1 1 -1 -1 -1
2 1 -1 1000 4 -1 -1 4 1000 -1 1 1 1 -1 1 -1 -1 -1
3 2 -1 500 2 -1 -1 2 500 -1 1 1 1 -1 1 -1 -1 -1
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, policy := range simulation.Policies() {
		result, err := simulation.Run(log, 4, policy, simulation.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %.0f s\n", result.Policy, result.Makespan)
	}
	// Output:
	// fcfs: 2500 s
	// first-fit: 2000 s
	// easy: 2000 s
	// easy-sjbf: 2000 s
	// shortest-first: 2000 s
	// stretch: 2000 s
	// conservative-10: 2000 s
	// conservative: 2000 s
}
