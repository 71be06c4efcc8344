package scenario

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// validate checks what can be without playing it, completes what was left out, and
// returns all faults. What follows from another fault is not one. Queues that are not
// the scenario's own are valid.
func (f *File) validate(ownQueues bool) error {
	v := &validation{file: f, gangs: map[string]string{}, nodes: map[string]capacity.Node{}}
	if !slices.Contains([]string{"", PodsGoAtOnce, PodsGoOnStep}, f.PodsGo) {
		v.faults.Add("podsGo", "%q: want %q or %q", f.PodsGo, PodsGoAtOnce, PodsGoOnStep)
	}
	if ownQueues {
		f.completeQueues()
		v.faults.Under("", f.ValidateWritten())
	}
	v.queues = f.stateQueues()
	v.duration(f.NodeGrace, "nodeGrace")
	v.nodeGroups("nodes", f.Nodes)
	_, err := f.pastUsage(v.queues)
	v.faults.Under("", err)
	for i := range f.Running {
		v.running(fault.Index("running", i), &f.Running[i])
	}
	for i := range f.Waiting {
		v.waiting(fault.Index("waiting", i), &f.Waiting[i])
	}
	for i := range f.Steps {
		v.step(fault.Index("steps", i), &f.Steps[i])
	}
	return v.faults.Err()
}

type validation struct {
	file   *File
	faults fault.List
	queues []state.Queue
	gangs  map[string]string // where each is, by its name
	nodes  map[string]capacity.Node
}

func (v *validation) duration(s Scalar, path string) {
	_, err := s.duration(path)
	v.faults.Under("", err)
}

func (v *validation) nodeGroups(path string, groups []NodeGroup) {
	for i := range groups {
		nodes, err := groups[i].nodes(fault.Index(path, i))
		v.faults.Under("", err)
		for _, n := range nodes {
			v.nodes[n.Name] = n
		}
	}
}

// gang checks a workload and notes its name.
func (v *validation) gang(path string, g *Gang) (w workload.Workload, ok bool) {
	w, err := v.file.workload(path, g, v.queues)
	v.faults.Under("", err)
	if g.Name == "" {
		g.Name = w.Name
	}
	if at, twice := v.gangs[w.Name]; twice {
		v.faults.Add(path+".name", "%q is the name of the workload at %s, too; want another", w.Name, at)
	}
	if w.Name != "" {
		v.gangs[w.Name] = path
	}
	return w, err == nil
}

func (v *validation) running(path string, g *Gang) {
	w, ok := v.gang(path, g)
	v.duration(g.Age, path+".age")
	if g.Age != "" && g.Places == nil {
		v.faults.Add(path+".age", "%q: a gang without places is admitted when the scenario begins; want its places, too", string(g.Age))
	}
	if ok && g.Places != nil && !v.faults.Within("nodes") {
		_, _, err := g.placements(path, &w, v.nodes)
		v.faults.Under("", err)
	}
}

func (v *validation) waiting(path string, g *Gang) {
	v.gang(path, g)
	if g.Places != nil {
		v.faults.Add(path+".places", "is for running workloads; a decision places this one")
	}
	if g.Age != "" {
		v.faults.Add(path+".age", "is for running workloads")
	}
}

func (v *validation) step(path string, s *Step) {
	for i := range s.Submit {
		v.waiting(fault.Index(path+".submit", i), &s.Submit[i])
	}
	for i := range s.AddNodes {
		_, err := s.AddNodes[i].nodes(fault.Index(path+".addNodes", i))
		v.faults.Under("", err)
	}
	if events := s.events(); len(events) > 1 {
		v.faults.Add(path, "has %d events (%s, %s); want one, the others in steps of their own", len(events), events[0].what, events[1].what)
	}
	v.duration(s.Pass, path+".pass")
	for _, e := range s.ofWorkloads() {
		for i, name := range e.names {
			v.known(fault.Index(path+"."+e.what, i), name)
		}
	}
	if s.Expect != nil {
		v.expect(path+".expect", s.Expect)
	}
}

func (v *validation) expect(path string, e *Expect) {
	for i, a := range e.Admitted {
		v.known(fault.Index(path+".admitted", i)+".name", a.Name)
	}
	for i, r := range e.Evicted {
		at := fault.Index(path+".evicted", i)
		v.known(at+".name", r.Name)
		v.reason(at+".because", r.Because)
	}
	for i, r := range e.Waiting {
		at := fault.Index(path+".waiting", i)
		v.known(at+".name", r.Name)
		v.reason(at+".because", r.Because)
	}
	for i, r := range e.Rejected {
		v.known(fault.Index(path+".rejected", i)+".name", r.Name)
	}
	for i, name := range e.Running {
		v.known(fault.Index(path+".running", i), name)
	}
	for _, name := range sortedKeys(e.Ended) {
		v.known(fault.Key(path+".ended", name), name)
		if phase := e.Ended[name]; !phase.Final() {
			v.faults.Add(fault.Key(path+".ended", name), "%q: want %s", phase, words(finalPhases()))
		}
	}
}

// known refuses names of workloads that are not submitted before or in the step.
func (v *validation) known(path, name string) {
	if name == "" {
		v.faults.Add(path, "is missing; want the name of a workload")
		return
	}
	if _, there := v.gangs[name]; there {
		return
	}
	if len(v.gangs) == 0 {
		v.faults.Add(path, "%q: there is no workload before or in this step", name)
		return
	}
	v.faults.Add(path, "%q: there is no workload of this name before or in this step; there are %s", name, strings.Join(sortedKeys(v.gangs), ", "))
}

func (v *validation) reason(path string, kind workload.ReasonKind) {
	if kind != "" && !slices.Contains(workload.ReasonKinds(), kind) {
		v.faults.Add(path, "%q: want one of %s", kind, words(workload.ReasonKinds()))
	}
}

// finalPhases are those in which a workload ends that was accepted.
func finalPhases() []workload.Phase {
	return slices.DeleteFunc(workload.Phases(), func(p workload.Phase) bool { return !p.Final() || p == workload.Rejected })
}

func words[T ~string](values []T) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ", ")
}
