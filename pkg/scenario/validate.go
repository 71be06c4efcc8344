package scenario

import (
	"errors"
	"fmt"
)

// validate checks what can be without running it, and returns all faults.
func (f *File) validate() error {
	var faults []error
	add := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	switch f.PodsGo {
	case "", PodsGoAtOnce, PodsGoWhenSaid:
	default:
		add(fault("podsGo", "%q: want %q or %q", f.PodsGo, PodsGoAtOnce, PodsGoWhenSaid))
	}
	queues, err := f.bookQueues()
	add(err)
	_, err = f.NodeGrace.duration("nodeGrace")
	add(err)
	for i := range f.Running {
		_, err := f.Running[i].Age.duration(fmt.Sprintf("running[%d].age", i))
		add(err)
	}
	gangs := map[string]string{}
	for i := range f.Nodes {
		_, err := f.Nodes[i].nodes(fmt.Sprintf("nodes[%d]", i))
		add(err)
	}
	gang := func(path string, g *Gang) {
		w, err := f.workload(path, g, queues)
		if err != nil {
			add(err)
			return
		}
		if g.Name == "" {
			g.Name = w.Name
		}
		if at, twice := gangs[w.Name]; twice {
			add(fault(path+".name", "%q is the name of the workload at %s, too; want another", w.Name, at))
		}
		gangs[w.Name] = path
	}
	for i := range f.Running {
		gang(fmt.Sprintf("running[%d]", i), &f.Running[i])
	}
	for i := range f.Waiting {
		path := fmt.Sprintf("waiting[%d]", i)
		gang(path, &f.Waiting[i])
		if f.Waiting[i].Places != nil || f.Waiting[i].Age != "" {
			add(fault(path, "has places or age, which are for running workloads"))
		}
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		path := fmt.Sprintf("steps[%d]", i)
		for j := range s.Submit {
			at := fmt.Sprintf("%s.submit[%d]", path, j)
			gang(at, &s.Submit[j])
			if s.Submit[j].Places != nil || s.Submit[j].Age != "" {
				add(fault(at, "has places or age, which are for running workloads"))
			}
		}
		for j := range s.AddNodes {
			_, err := s.AddNodes[j].nodes(fmt.Sprintf("%s.addNodes[%d]", path, j))
			add(err)
		}
		if events := s.events(); len(events) > 1 {
			add(fault(path, "has %d events (%s, %s); want one, the others in steps of their own", len(events), events[0].what, events[1].what))
		}
		_, err := s.Pass.duration(path + ".pass")
		add(err)
		add(f.validateNames(path, s, gangs))
	}
	return errors.Join(faults...)
}

// validateNames refuses steps that speak of workloads that nobody submits.
func (f *File) validateNames(path string, s *Step, known map[string]string) error {
	var faults []error
	check := func(field, name string) {
		if _, there := known[name]; !there {
			faults = append(faults, fault(path+"."+field, "there is no workload %q before or in this step", name))
		}
	}
	for _, e := range []struct {
		field string
		names []string
	}{{"end", s.End}, {"fail", s.Fail}, {"cancel", s.Cancel}, {"gone", s.Gone}, {"losePod", s.LosePod}} {
		for _, name := range e.names {
			check(e.field, name)
		}
	}
	if s.Expect == nil {
		return errors.Join(faults...)
	}
	for _, a := range s.Expect.Admitted {
		check("expect.admitted", a.Name)
	}
	for _, e := range s.Expect.Evicted {
		check("expect.evicted", e.Name)
	}
	for _, w := range s.Expect.Waiting {
		check("expect.waiting", w.Name)
	}
	for _, r := range s.Expect.Rejected {
		check("expect.rejected", r.Name)
	}
	for _, name := range s.Expect.Running {
		check("expect.running", name)
	}
	for name, phase := range s.Expect.Ended {
		check("expect.ended", name)
		if !phase.Final() {
			faults = append(faults, fault(path+".expect.ended."+name, "%q: want succeeded, failed or cancelled", phase))
		}
	}
	return errors.Join(faults...)
}
