package submissions_test

import (
	"bytes"
	"errors"
	"testing"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/whatif/scenario"
	"muster.dev/muster/pkg/whatif/submissions"
)

// FuzzRead: whatever is in a file, it is a list of jobs that run for some time and have
// pods, or an error with its faults.
func FuzzRead(f *testing.F) {
	f.Add([]byte(event + "\n"))
	f.Add([]byte(openbHeader + "pod,6000,12288,1,460,V100M16|V100M32,LS,Running,10,110,30\n"))
	f.Add([]byte("; MaxNodes: 4\n1 5 -1 100 2 -1 -1 3 200 -1 1 1 1 -1 -1 -1 -1 -1\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		read, err := submissions.Read(bytes.NewReader(content), submissions.Options{Queue: "q"})
		if err != nil {
			var faults fault.List
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error has no faults: %v", err)
			}
			return
		}
		jobs, _, _ := read.Jobs(0) // that there are none is an answer
		for i, j := range jobs {
			if j.Run <= 0 || j.Pods() < 1 || i > 0 && j.Submitted.Before(jobs[i-1].Submitted) {
				t.Fatalf("job %d is %+v", i, j)
			}
		}
	})
}

// FuzzFleet: whatever is in a file, it is nodes with different names or an error with its
// faults.
func FuzzFleet(f *testing.F) {
	f.Add([]byte("groups: [{name: gpu-{00}, count: 3, zones: 2, racksPerZone: 1, allocatable: {cpu: 8}}]\n"))
	f.Add([]byte("nodes: [{name: a, allocatable: {cpu: 8, memory: 1Ti}}]\n"))
	f.Add([]byte("sn,cpu_milli,memory_mib,gpu,model\nnode,64000,262144,2,P100\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		nodes, err := scenario.ReadFleet(content)
		if err != nil {
			var faults fault.List
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error has no faults: %v", err)
			}
			return
		}
		known := map[string]bool{}
		for _, n := range nodes {
			if known[n.Name] || n.Name == "" {
				t.Fatalf("two nodes or none are named %q", n.Name)
			}
			known[n.Name] = true
		}
	})
}
