package scenario_test

import (
	"fmt"

	"muster.dev/muster/pkg/whatif/scenario"
)

// A scenario plays events through the real decisions and says what happened.
func ExampleRun() {
	file, err := scenario.Parse([]byte(`
name: a gang starts whole or waits
nodes:
  - name: gpu-{0}
    count: 2
    allocatable: {cpu: 8, nvidia.com/gpu: 4}
waiting:
  - name: fits
    pods: [{name: workers, count: 2, requests: {nvidia.com/gpu: 3}}]
  - name: too-large
    pods: [{name: workers, count: 3, requests: {nvidia.com/gpu: 2}}]
steps:
  - end: fits
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := scenario.Run(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range outcome.Steps {
		for _, admitted := range step.Admitted {
			fmt.Printf("step %d: %s is admitted\n", step.Step, admitted.Name)
		}
		for _, waiting := range step.Waiting {
			fmt.Printf("step %d: %s waits\n", step.Step, waiting.Name)
		}
	}
	// Output:
	// step 0: fits is admitted
	// step 0: too-large waits
	// step 1: too-large is admitted
}
