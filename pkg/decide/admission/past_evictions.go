package admission

import (
	"maps"

	"muster.dev/muster/pkg/spec/workload"
)

// pastEvictions has which gangs were evicted for which; the package comment explains why that
// counts.
type pastEvictions struct {
	victims    map[workload.ID]map[workload.ID]bool // by preemptor
	preemptors map[workload.ID]map[workload.ID]bool // by victim
}

func newPastEvictions(preemptors int) pastEvictions {
	return pastEvictions{make(map[workload.ID]map[workload.ID]bool, preemptors), map[workload.ID]map[workload.ID]bool{}}
}

// add notes that a gang was evicted for another one.
func (p pastEvictions) add(preemptor, victim workload.ID) {
	note := func(in map[workload.ID]map[workload.ID]bool, key, of workload.ID) {
		if in[key] == nil {
			in[key] = map[workload.ID]bool{}
		}
		in[key][of] = true
	}
	note(p.victims, preemptor, victim)
	note(p.preemptors, victim, preemptor)
}

// between reports whether one of the two was evicted for the other.
func (p pastEvictions) between(a, b workload.ID) bool { return p.victims[a][b] || p.victims[b][a] }

// forgetVictims forgets which gangs were evicted for a gang.
func (p pastEvictions) forgetVictims(preemptor workload.ID) {
	for victim := range p.victims[preemptor] {
		forgetIn(p.preemptors, victim, preemptor)
	}
	delete(p.victims, preemptor)
}

// forget forgets which gangs were evicted for a gang, and for which it was.
func (p pastEvictions) forget(id workload.ID) {
	p.forgetVictims(id)
	for preemptor := range p.preemptors[id] {
		forgetIn(p.victims, preemptor, id)
	}
	delete(p.preemptors, id)
}

func forgetIn(in map[workload.ID]map[workload.ID]bool, key, of workload.ID) {
	if delete(in[key], of); len(in[key]) == 0 {
		delete(in, key)
	}
}

func (p pastEvictions) clone() pastEvictions {
	copied := newPastEvictions(len(p.victims))
	for preemptor, victims := range p.victims {
		copied.victims[preemptor] = maps.Clone(victims)
	}
	for victim, preemptors := range p.preemptors {
		copied.preemptors[victim] = maps.Clone(preemptors)
	}
	return copied
}
