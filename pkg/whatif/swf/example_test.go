package swf_test

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/whatif/swf"
)

// A log in the Standard Workload Format has 18 fields a line; -1 is unknown.
func ExampleRead() {
	log, err := swf.Read(strings.NewReader(`; MaxNodes: 128
1 0 10 3600 64 -1 -1 64 7200 -1 1 3 1 -1 1 -1 -1 -1
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, known := log.Number("MaxNodes")
	fmt.Println(nodes, known, len(log.Jobs), log.Jobs[0].Processors, log.Jobs[0].Run)
	// Output: 128 true 1 64 3600
}
