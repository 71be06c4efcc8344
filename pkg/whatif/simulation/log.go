package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/swf"
)

const (
	queueName   = "log"
	clusterName = "simulated"
	// processor is what each pod of a log asks for one of, and each node has one of.
	processor = resource.Name("muster.dev/processor")
)

// Shape is what a log's jobs are as gangs.
type Shape struct {
	// Pod is what the pod of a processor requests; nil is one muster.dev/processor.
	Pod resource.List
	// Queue of the jobs; "log" when empty.
	Queue string
	// Most processors that a job may ask for; zero for any number.
	Most int
	// KnownRunTimes: the jobs declare the time that they run, and not the one that they
	// requested, which logs that are made by models do not have.
	KnownRunTimes bool
}

// OfLog returns the jobs of a log that can be simulated, in the order of their submission.
//
// ErrNoJobs is wrapped when there are none.
func OfLog(log swf.Log, shape Shape) ([]Job, Left, error) {
	requests := resource.List{processor: 1}
	if shape.Pod != nil {
		requests = shape.Pod
	}
	template := workload.Template{Requests: requests.Plus(resource.List{resource.Pods: 1})}
	var jobs []Job
	var left Left
	for _, j := range log.Jobs {
		processors := j.AskProcessors
		if processors <= 0 {
			processors = j.Processors
		}
		if shape.KnownRunTimes {
			j.AskTime = j.Run
		}
		switch {
		case processors <= 0:
			left.NoProcessors++
		case processors > mostProcessors || shape.Most > 0 && processors > int64(shape.Most):
			left.TooLarge++
		case j.Run <= 0:
			left.NoRunTime++
		case j.AskTime <= 0:
			left.NoRequestedTime++
		default:
			jobs = append(jobs, ofLine(j, int(processors), template, cmp.Or(shape.Queue, queueName)))
		}
	}
	switch {
	case len(log.Jobs) == 0:
		return nil, left, fmt.Errorf("%w: it has none, only %d header lines; want a line of 18 numbers for each", ErrNoJobs, len(log.Headers))
	case len(jobs) == 0:
		return nil, left, fmt.Errorf("%w: none of its %d can be simulated%s: %s", ErrNoJobs, len(log.Jobs), shape.on(), left)
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return a.Submitted.Compare(b.Submitted) })
	return jobs, left, nil
}

func (s Shape) on() string {
	if s.Most == 0 {
		return ""
	}
	return fmt.Sprintf(" on %d nodes", s.Most)
}

// mostProcessors bounds the pods of a job.
const mostProcessors = MostNodes

func ofLine(j swf.Job, processors int, template workload.Template, queue string) Job {
	asked := time.Duration(j.AskTime) * time.Second
	id := event.WorkloadID("log", fmt.Sprintf("%d/%d", j.Line, j.Number))
	return Job{
		Label: fmt.Sprintf("job %d of line %d", j.Number, j.Line), Submitted: time.Unix(j.Submit, 0).UTC(),
		Run: min(time.Duration(j.Run)*time.Second, asked),
		Workload: workload.Workload{
			Submitter: fmt.Sprintf("user-%d", j.User),
			ID:        id, Queue: queue, Kind: "Job", Name: fmt.Sprintf("program%d-%d-%d", j.Executable, j.Number, j.Line), Digest: string(id),
			Life:    workload.Life{RunTime: workload.Duration(asked)},
			PodSets: []workload.PodSet{{Name: "processors", Role: workload.RoleWorker, Count: processors, Template: template}},
		},
	}
}

// Alike returns a number of nodes of one processor each.
func Alike(count int) []capacity.Node {
	nodes := make([]capacity.Node, count)
	for i := range nodes {
		nodes[i] = capacity.Node{
			Cluster: clusterName, Name: fmt.Sprintf("node-%05d", i), Ready: true, Allocatable: resource.List{processor: 1, resource.Pods: 1},
		}
	}
	return nodes
}

// On returns a site of the nodes with one queue, "log", that has the policy.
func (p Policy) On(nodes []capacity.Node) Site {
	queue := p.Queue()
	queue.Name = queueName
	return Site{
		Nodes:  nodes,
		Queues: []state.Queue{{Name: queueName, Namespaces: []string{queueName}}},
		Policy: quota.Config{ClusterQueues: []quota.ClusterQueue{queue}},
	}
}
