package submissions

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/scenario"
	"muster.dev/muster/pkg/whatif/simulation"
)

// openbColumns are those of the pod lists of cluster-trace-gpu-v2023.
func openbColumns() []string {
	return []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
	}
}

// Places of the columns.
const (
	openbName = iota
	openbCPU
	openbMemory
	openbGPUs
	openbShare
	openbModels
	openbQoS
	openbPhase
	openbCreated
	openbDeleted
	openbScheduled
	openbWidth
)

// readOpenB reads a pod list: each pod is a gang of one. A share of a GPU counts as a whole
// one, because Kubernetes has no other.
func readOpenB(r io.Reader, o Options) ([]simulation.Job, error) {
	if o.Queue == "" {
		return nil, fault.List{{Text: "a pod list names no queues; set the queue of its pods with --queue"}}
	}
	var jobs []simulation.Job
	err := lines(r, func(number int, line string) error {
		words := strings.Split(line, ",")
		switch {
		case len(words) != openbWidth:
			return fmt.Errorf("has %d columns, want %d: %q", len(words), openbWidth, fault.Clip(line))
		case words[openbName] == openbColumns()[openbName]:
			return nil // the header
		}
		job, err := ofPod(number, words, o)
		if err == nil {
			jobs = append(jobs, job)
		}
		return err
	})
	bySubmission(jobs)
	return jobs, err
}

func ofPod(number int, words []string, o Options) (simulation.Job, error) {
	var faults fault.List
	whole := func(column int, largest int64) int64 {
		value, err := strconv.ParseInt(words[column], 10, 64)
		if err != nil || value < 0 || value > largest {
			faults.Add(openbColumns()[column], "%q: want a whole number, 0 to %d", fault.Clip(words[column]), largest)
		}
		return value
	}
	requests := resource.List{
		"cpu": whole(openbCPU, largestCPU), "memory": whole(openbMemory, largestMemory) << 20, resource.Pods: 1,
	}
	if gpus := whole(openbGPUs, largestGPUs); gpus > 0 {
		requests["nvidia.com/gpu"] = gpus
	}
	created, deleted, begun := whole(openbCreated, longestTrace), whole(openbDeleted, longestTrace), int64(0)
	if words[openbScheduled] != "" {
		begun = whole(openbScheduled, longestTrace)
	}
	ran := time.Duration(deleted-max(created, begun)) * time.Second
	if len(faults) == 0 && ran <= 0 {
		faults.Add(openbColumns()[openbDeleted], "%d: want a time after its start at %d", deleted, max(created, begun))
	}
	id := event.WorkloadID("openb", fmt.Sprint(number))
	template := workload.Template{Requests: requests}
	if models := words[openbModels]; models != "" {
		template.Affinity = []workload.NodeTerm{{Labels: []workload.Requirement{{Key: scenario.ModelLabel, Operator: "In", Values: strings.Split(models, "|")}}}}
	}
	return simulation.Job{
		Label: fmt.Sprintf("line %d (%s)", number, fault.Clip(words[openbName])), Submitted: beginning().Add(time.Duration(created) * time.Second), Run: ran,
		Workload: workload.Workload{
			ID: id, Digest: string(id), Kind: "Job", Name: nameOf(words[openbName], number), Queue: o.Queue, Submitter: userOf(""),
			PodSets: []workload.PodSet{{Name: "pod", Role: workload.RoleWorker, Count: 1, Template: template}},
		},
	}, faults.Err()
}

// Bounds of what a pod may ask for, and of the times of a trace, a hundred years, in seconds.
const (
	largestCPU    = 1 << 30
	largestMemory = 1 << 40 // MiB
	largestGPUs   = 1 << 20
	longestTrace  = 100 * 365 * 24 * 3600
)
