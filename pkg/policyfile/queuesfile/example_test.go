package queuesfile_test

import (
	"fmt"

	"muster.dev/muster/pkg/policyfile/queuesfile"
)

// A mistake is named with its place, its value and what would be right.
func ExampleRead() {
	_, _, err := queuesfile.Read([]byte(`
queues:
- name: research
  namespaces: [research]
  strategy: Fifo
`))
	fmt.Println(err)
	// Output: line 5: queues[0].strategy: "Fifo": want BestEffortFIFO, StrictFIFO or Backfill
}
