package scenario

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/world"
)

// defaultNodeGrace is queue-manager's default, too.
const defaultNodeGrace = time.Minute

func defaultStart() time.Time { return time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC) }

// start is when the scenario begins.
func (f *File) start() time.Time {
	if f.Start.IsZero() {
		return defaultStart()
	}
	return f.Start
}

// open begins the simulation, with the workloads that have been running since
// before the beginning.
func (f *File) open() (*play, error) {
	queues := f.stateQueues()
	o := world.Options{Start: f.start(), Queues: queues, Policy: f.Config, NodeGrace: defaultNodeGrace, Linger: f.PodsGo == PodsGoOnStep}
	past, err := f.pastUsage(queues)
	if err != nil {
		return nil, err
	}
	o.PastUsage = past
	if f.NodeGrace != "" {
		grace, err := f.NodeGrace.duration("nodeGrace")
		if err != nil {
			return nil, err
		}
		o.NodeGrace = grace
	}
	known := map[string]capacity.Node{}
	for i := range f.Nodes {
		nodes, err := f.Nodes[i].nodes(fault.Index("nodes", i))
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			known[n.Name] = n
			o.Nodes = append(o.Nodes, n)
		}
	}
	policy, err := quota.New(state.PolicyOf(queues, f.Config))
	if err != nil {
		return nil, err
	}
	p := &play{file: f, queues: queues, nodes: map[string]capacity.Node{}}
	for i := range f.Running {
		g := &f.Running[i]
		if g.Places == nil {
			continue
		}
		record, err := f.running(fault.Index("running", i), g, queues, policy, known)
		if err != nil {
			return nil, err
		}
		age, err := g.Age.duration(fault.Index("running", i) + ".age")
		if err != nil {
			return nil, err
		}
		since := o.Start.Add(-age)
		record.Times = workload.Times{Submitted: since, Admitted: since, Dispatched: since, Running: since}
		o.Running = append(o.Running, record)
		p.order = append(p.order, record.ID)
	}
	p.World = world.New(o)
	return p, nil
}

// running is the record of a gang that has its places.
func (f *File) running(path string, g *Gang, queues []state.Queue, policy *quota.Tree, known map[string]capacity.Node) (workload.Record, error) {
	w, err := f.workload(path, g, queues)
	if err != nil {
		return workload.Record{}, err
	}
	if w.Namespace == "" {
		w.Namespace = namespaceOf(queues, w.Queue)
	}
	if g.PriorityClass != "" {
		if w.Priority, err = f.Config.Priority(g.PriorityClass); err != nil {
			return workload.Record{}, fault.At(path+".priorityClass", "%s", err)
		}
	}
	record := workload.Record{Workload: w, Phase: workload.Running, Attempt: 1, Holding: true}
	if record.Placements, record.Cluster, err = g.placements(path, &w, known); err != nil {
		return workload.Record{}, err
	}
	if record.Flavors, err = flavorsOf(policy, &w, record.Placements, known); err != nil {
		return workload.Record{}, fault.At(path+".places", "%s", err)
	}
	return record, nil
}

func namespaceOf(queues []state.Queue, name string) string {
	for _, q := range queues {
		if q.Name == name {
			return q.Namespaces[0]
		}
	}
	return ""
}
