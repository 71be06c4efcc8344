package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/rehearsal"
	"muster.dev/muster/pkg/workload"
)

// defaultNodeGrace is queue-manager's default, too.
const defaultNodeGrace = time.Minute

func defaultStart() time.Time { return time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC) }

// play is a scenario under way.
type play struct {
	*rehearsal.Rehearsal
	file   *File
	queues []book.Queue
	nodes  map[string]capacity.Node // by name
	order  []workload.ID            // of submission
	// at is the outcome of the step that is being played.
	at *StepOutcome
}

// Run plays the scenario. An error means that it cannot be played, such as a
// running workload that does not fit; that it comes out otherwise than expected
// is in the outcome.
func Run(f *File) (Outcome, error) {
	p, err := f.open()
	if err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Name: f.Name, Passed: true}
	if err := p.setUp(); err != nil {
		return Outcome{}, err
	}
	// What the setting up led to belongs to the first step when nothing happens
	// in that: it says what is expected of the beginning.
	if len(f.Steps) == 0 || len(f.Steps[0].events()) > 0 {
		outcome.Steps = append(outcome.Steps, p.finish())
		p.at = nil
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		if p.at == nil {
			p.at = &StepOutcome{}
		}
		p.at.Step, p.at.Say = i+1, s.Say
		for _, e := range s.events() {
			p.at.Event = e.String()
		}
		if err := p.step(fmt.Sprintf("steps[%d]", i), s); err != nil {
			return Outcome{}, err
		}
		done := p.finish()
		if s.Expect != nil {
			done.Differences = p.compare(s.Expect, &done)
		}
		outcome.Passed = outcome.Passed && len(done.Differences) == 0
		outcome.Steps = append(outcome.Steps, done)
		p.at = nil
	}
	return outcome, nil
}

// setUp brings the nodes and the workloads there, in the order of the file.
func (p *play) setUp() error {
	p.at = &StepOutcome{}
	for i := range p.file.Nodes {
		if err := p.addNodes(fmt.Sprintf("nodes[%d]", i), &p.file.Nodes[i]); err != nil {
			return err
		}
	}
	for i := range p.file.Running {
		g := &p.file.Running[i]
		path := fmt.Sprintf("running[%d]", i)
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
			return fault(path, "%q should be running, but cannot be started: %s", g.Name, why)
		}
	}
	p.at.Admitted = nil // as the file says
	for i := range p.file.Waiting {
		if err := p.submit(fmt.Sprintf("waiting[%d]", i), &p.file.Waiting[i]); err != nil {
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
	return "nobody says why"
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
			return fault(path+".name", "there is a node %q already, in cluster %s", n.Name, other.Cluster)
		}
		p.nodes[n.Name] = n
		p.note(p.SetNode(n))
	}
	return nil
}

// step lets the event of the step happen.
func (p *play) step(path string, s *Step) error {
	for i := range s.Submit {
		if err := p.submit(fmt.Sprintf("%s.submit[%d]", path, i), &s.Submit[i]); err != nil {
			return err
		}
	}
	for i := range s.AddNodes {
		if err := p.addNodes(fmt.Sprintf("%s.addNodes[%d]", path, i), &s.AddNodes[i]); err != nil {
			return err
		}
	}
	for _, e := range []struct {
		field string
		names []string
		do    func(id workload.ID) ([]rehearsal.Step, error)
	}{
		{"end", s.End, func(id workload.ID) ([]rehearsal.Step, error) { return p.End(id, event.OutcomeSucceeded) }},
		{"fail", s.Fail, func(id workload.ID) ([]rehearsal.Step, error) { return p.End(id, event.OutcomeFailed) }},
		{"cancel", s.Cancel, func(id workload.ID) ([]rehearsal.Step, error) { return p.Cancel(id, "") }},
		{"gone", s.Gone, p.Gone},
		{"losePod", s.LosePod, p.LosePod},
	} {
		for _, name := range e.names {
			steps, err := e.do(workload.ID(name))
			if err != nil {
				return fault(path+"."+e.field, "%w", err)
			}
			p.note(steps)
		}
	}
	if err := p.changeNodes(path, s); err != nil {
		return err
	}
	span, err := s.Pass.duration(path + ".pass")
	if err != nil {
		return err
	}
	p.note(p.Advance(p.Now().Add(span)))
	return nil
}

func (p *play) changeNodes(path string, s *Step) error {
	for _, e := range []struct {
		field  string
		names  []string
		change func(*capacity.Node)
	}{
		{"cordon", s.Cordon, func(n *capacity.Node) { n.Cordoned = true }},
		{"uncordon", s.Uncordon, func(n *capacity.Node) { n.Cordoned = false }},
		{"notReady", s.NotReady, func(n *capacity.Node) { n.Ready = false }},
		{"ready", s.Ready, func(n *capacity.Node) { n.Ready = true }},
		{"removeNodes", s.RemoveNodes, nil},
	} {
		for _, name := range e.names {
			n, there := p.nodes[name]
			switch {
			case !there:
				return fault(path+"."+e.field, "there is no node %q", name)
			case e.change == nil:
				delete(p.nodes, name)
				p.note(p.RemoveNode(n.Cluster, name))
			default:
				e.change(&n)
				p.nodes[name] = n
				p.note(p.SetNode(n))
			}
		}
	}
	return nil
}

// note adds what happened to the step.
func (p *play) note(steps []rehearsal.Step) {
	for _, s := range steps {
		switch {
		case s.Phase == workload.Admitted && s.Times.Admitted.Equal(s.At) && s.Reason == nil:
			p.at.Admitted = append(p.at.Admitted, AdmittedOutcome{s.Name, s.Cluster, s.Placements})
		case s.Phase == workload.Evicting:
			p.at.Evicted = append(p.at.Evicted, ReasonOutcome{Name: s.Name, Phase: s.Phase, Reason: s.Reason})
		case s.Phase.Final() && !slices.ContainsFunc(p.at.Ended, func(r ReasonOutcome) bool { return r.Name == s.Name }):
			p.at.Ended = append(p.at.Ended, ReasonOutcome{Name: s.Name, Phase: s.Phase, Reason: s.Reason})
		}
	}
}

// finish completes the outcome of the step with who waits after it.
func (p *play) finish() StepOutcome {
	p.note(p.Refresh())
	for _, id := range p.order {
		if record, known := p.Record(id); known && record.Phase == workload.Queued {
			p.at.Waiting = append(p.at.Waiting, ReasonOutcome{Name: record.Name, Phase: record.Phase, Reason: record.Reason})
		}
	}
	p.at.At = p.Now()
	return *p.at
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// open begins the rehearsal, with the workloads that have been running since
// before the beginning.
func (f *File) open() (*play, error) {
	queues, err := f.bookQueues()
	if err != nil {
		return nil, err
	}
	o := rehearsal.Options{Start: f.Start, Queues: queues, Policy: f.Config, NodeGrace: defaultNodeGrace, Linger: f.PodsGo == PodsGoWhenSaid}
	if o.Start.IsZero() {
		o.Start = defaultStart()
	}
	if f.NodeGrace != "" {
		if o.NodeGrace, err = f.NodeGrace.duration("nodeGrace"); err != nil {
			return nil, err
		}
	}
	known := map[string]capacity.Node{}
	for i := range f.Nodes {
		nodes, err := f.Nodes[i].nodes(fmt.Sprintf("nodes[%d]", i))
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			known[n.Name] = n
			o.Nodes = append(o.Nodes, n)
		}
	}
	policy, err := quota.New(book.PolicyOf(queues, f.Config))
	if err != nil {
		return nil, err
	}
	p := &play{file: f, queues: queues, nodes: map[string]capacity.Node{}}
	for i := range f.Running {
		g := &f.Running[i]
		path := fmt.Sprintf("running[%d]", i)
		if g.Places == nil {
			if g.Age != "" {
				return nil, fault(path+".age", "%q: a gang without places is admitted when the scenario begins; give its places too", g.Age)
			}
			continue
		}
		w, err := f.workload(path, g, queues)
		if err != nil {
			return nil, err
		}
		if w.Namespace == "" {
			w.Namespace = namespaceOf(queues, w.Queue)
		}
		if g.PriorityClass != "" {
			if w.Priority, err = f.Config.Priority(g.PriorityClass); err != nil {
				return nil, fault(path+".priorityClass", "%w", err)
			}
		}
		record := workload.Record{Workload: w, Phase: workload.Running, Attempt: 1, Holding: true}
		if record.Placements, record.Cluster, err = g.placements(path, &w, known); err != nil {
			return nil, err
		}
		if record.Flavors, err = flavorsOf(policy, &w, record.Placements, known); err != nil {
			return nil, fault(path+".places", "%w", err)
		}
		age, err := g.Age.duration(path + ".age")
		if err != nil {
			return nil, err
		}
		since := o.Start.Add(-age)
		record.Times = workload.Times{Submitted: since, Admitted: since, Dispatched: since, Running: since}
		o.Running = append(o.Running, record)
		p.order = append(p.order, w.ID)
	}
	p.Rehearsal = rehearsal.New(o)
	return p, nil
}

func namespaceOf(queues []book.Queue, name string) string {
	for _, q := range queues {
		if q.Name == name {
			return q.Namespaces[0]
		}
	}
	return ""
}
