package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/policyfile/strictyaml"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/world"
)

// play is a scenario under way.
type play struct {
	*world.World
	file   *File
	queues []state.Queue
	nodes  map[string]capacity.Node // by name
	order  []workload.ID            // of submission
	// at is the outcome of the step that is being played.
	at *StepOutcome
}

// Run plays the scenario. An error, a fault.List, means that it cannot be played,
// such as a running workload that does not fit; that it comes out otherwise than
// expected is in the outcome.
func Run(f *File) (Outcome, error) {
	outcome, _, err := f.run()
	if err != nil {
		return Outcome{}, f.locate(err)
	}
	return outcome, nil
}

// RunExplained is Run, and returns for each that waits at the end what would admit
// them.
func RunExplained(f *File) (Outcome, error) {
	outcome, p, err := f.run()
	if err == nil {
		err = p.explain(&outcome)
	}
	if err != nil {
		return Outcome{}, f.locate(err)
	}
	return outcome, nil
}

func (f *File) locate(err error) error {
	if f.source == nil {
		return err
	}
	return strictyaml.Locate(f.source, err)
}

func (p *play) explain(outcome *Outcome) error {
	for _, waiting := range outcome.Steps[len(outcome.Steps)-1].Waiting {
		explained, err := p.Explain(workload.ID(waiting.Name))
		if err != nil {
			return err
		}
		outcome.Explained = append(outcome.Explained, explained)
	}
	return nil
}

func (f *File) run() (Outcome, *play, error) {
	p, err := f.open()
	if err != nil {
		return Outcome{}, nil, err
	}
	outcome := Outcome{Name: f.Name}
	if err := p.setUp(); err != nil {
		return Outcome{}, nil, err
	}
	// What the setting up led to belongs to the first step when nothing happens
	// in that: it is what is expected of the beginning.
	if len(f.Steps) == 0 || len(f.Steps[0].events()) > 0 {
		begun := p.finish()
		begun.Unexpected = namesOf(begun.Rejected)
		outcome.Steps = append(outcome.Steps, begun)
		p.at = nil
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		if p.at == nil {
			p.at = &StepOutcome{}
		}
		p.at.Step, p.at.Note = i+1, s.Note
		for _, e := range s.events() {
			p.at.Event = e.String()
		}
		if err := p.step(fault.Index("steps", i), s); err != nil {
			return Outcome{}, nil, err
		}
		done := p.finish()
		if s.Expect == nil {
			done.Unexpected = namesOf(done.Rejected)
		} else {
			done.Differences = p.compare(s.Expect, &done)
			outcome.Checked++
			outcome.Differences += len(done.Differences)
		}
		outcome.Steps = append(outcome.Steps, done)
		p.at = nil
	}
	outcome.Passed = outcome.Checked > 0 && outcome.Differences == 0
	return outcome, p, nil
}

func namesOf(list []ReasonOutcome) (names []string) {
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

// step lets the event of the step happen.
func (p *play) step(path string, s *Step) error {
	for i := range s.Submit {
		if err := p.submit(fault.Index(path+".submit", i), &s.Submit[i]); err != nil {
			return err
		}
	}
	for i := range s.AddNodes {
		if err := p.addNodes(fault.Index(path+".addNodes", i), &s.AddNodes[i]); err != nil {
			return err
		}
	}
	for _, e := range []struct {
		field string
		names []string
		do    func(id workload.ID) ([]world.Step, error)
	}{
		{"end", s.End, func(id workload.ID) ([]world.Step, error) { return p.End(id, event.OutcomeSucceeded) }},
		{"fail", s.Fail, func(id workload.ID) ([]world.Step, error) { return p.End(id, event.OutcomeFailed) }},
		{"cancel", s.Cancel, func(id workload.ID) ([]world.Step, error) { return p.Cancel(id, "") }},
		{"checkpoint", s.Checkpoint, p.Checkpoint},
		{"gone", s.Gone, p.Gone},
		{"losePod", s.LosePod, p.LosePod},
	} {
		for i, name := range e.names {
			steps, err := e.do(workload.ID(name))
			if err != nil {
				return fault.At(fault.Index(path+"."+e.field, i), "%s", err)
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
		for i, name := range e.names {
			n, there := p.nodes[name]
			switch {
			case !there:
				return fault.At(fault.Index(path+"."+e.field, i), "%q: there is no node of this name at that time; there are %s", name, names(p.nodes))
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
func (p *play) note(steps []world.Step) {
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

// finish completes the outcome of the step with who waits after it, and why,
// with the amounts of that moment.
func (p *play) finish() StepOutcome {
	p.note(p.Refresh())
	present := p.Present(p.order...)
	for _, id := range p.order {
		record, known := p.Record(id)
		if !known || record.Phase != workload.Queued {
			continue
		}
		why := record.Reason
		if now := present[id]; now != nil {
			why = now
		}
		p.at.Waiting = append(p.at.Waiting, ReasonOutcome{Name: record.Name, Phase: record.Phase, Reason: why})
	}
	p.at.At = p.Now()
	return *p.at
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// names lists the nodes for a message, or as many as a person reads.
func names(nodes map[string]capacity.Node) string {
	const most = 20
	all := sortedKeys(nodes)
	switch {
	case len(all) == 0:
		return "none"
	case len(all) > most:
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}
