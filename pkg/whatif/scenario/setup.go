package scenario

import (
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// setUp brings the nodes and the workloads there, in the order of the file.
func (p *play) setUp() error {
	p.at = &StepOutcome{}
	for i := range p.file.Nodes {
		if err := p.addNodes(fault.Index("nodes", i), &p.file.Nodes[i]); err != nil {
			return err
		}
	}
	for i := range p.file.Running {
		g := &p.file.Running[i]
		path := fault.Index("running", i)
		if g.Places != nil {
			continue // it has been running since before the beginning
		}
		if err := p.submit(path, g); err != nil {
			return err
		}
		if record, known := p.Record(workload.ID(g.Name)); !known || !record.Holding {
			why := "it is refused: " + rejectedWhy(p.at, g.Name)
			if known && record.Reason != nil {
				why = record.Reason.Message
			}
			return fault.At(path, "%q should be running, but cannot be started: %s", g.Name, why)
		}
	}
	p.at.Admitted = nil // as in the file
	for i := range p.file.Waiting {
		if err := p.submit(fault.Index("waiting", i), &p.file.Waiting[i]); err != nil {
			return err
		}
	}
	return nil
}

func rejectedWhy(at *StepOutcome, name string) string {
	for _, r := range at.Rejected {
		if r.Name == name {
			return r.message()
		}
	}
	return "without a reason"
}

func (p *play) submit(path string, g *Gang) error {
	w, err := p.file.workload(path, g, p.queues)
	if err != nil {
		return err
	}
	steps, err := p.Submit(w, g.PriorityClass)
	if err != nil {
		p.at.Rejected = append(p.at.Rejected, ReasonOutcome{
			Name: w.Name, Phase: workload.Rejected, Reason: &workload.Reason{Kind: workload.ReasonInvalid, Message: err.Error()},
		})
		return nil
	}
	p.order = append(p.order, w.ID)
	p.note(steps)
	return nil
}

func (p *play) addNodes(path string, g *NodeGroup) error {
	nodes, err := g.nodes(path)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if other, there := p.nodes[n.Name]; there {
			return fault.At(path+".name", "there is a node %q already, in cluster %s", n.Name, other.Cluster)
		}
		p.nodes[n.Name] = n
		p.note(p.SetNode(n))
	}
	return nil
}
