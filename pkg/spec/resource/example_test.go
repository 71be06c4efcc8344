package resource_test

import (
	"fmt"

	"muster.dev/muster/pkg/spec/resource"
)

// Amounts are whole numbers of the smallest unit, so that nothing is rounded twice.
func ExampleParse() {
	for _, text := range []string{"1500m", "0.0001", "2"} {
		amount, err := resource.Parse(resource.CPU, text)
		fmt.Println(amount, err)
	}
	// Output:
	// 1500 <nil>
	// 1 <nil>
	// 2000 <nil>
}

// A node with eight GPUs and little memory holds fewer pods than its GPUs suggest.
func ExampleList_FitsIn() {
	pod := resource.List{"nvidia.com/gpu": 1, resource.Memory: 32 << 30}
	free := resource.List{"nvidia.com/gpu": 8, resource.Memory: 100 << 30}
	fmt.Println(pod.Times(3).FitsIn(free), pod.Times(4).FitsIn(free))
	// Output: true false
}
