package estimate

import (
	"container/heap"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/world"
)

// begin begins to play a snapshot.
func begin(s Snapshot, runs RunTimes, bounds Bounds) (*play, error) {
	p := &play{runs: runs, forecast: Forecast{Starts: map[workload.ID]time.Time{}}, missing: map[workload.ID]bool{}, ending: map[workload.ID]int{}}
	for _, id := range bounds.Until {
		p.missing[id] = true
	}
	p.World = world.New(world.Options{
		Start: s.Now, Queues: s.Queues, Policy: s.Policy, PastUsage: s.PastUsage, Learned: s.Learned, NodeGrace: s.NodeGrace,
		Nodes: s.Nodes, Running: s.Running, Waiting: s.Waiting, Linger: true, // evicted gangs have a grace
	})
	for i := range s.Running {
		switch r := &s.Running[i]; {
		case r.Phase == workload.Evicting, r.Phase == workload.Cancelling, r.Phase.Final():
			p.at(latest(s.Now, r.EvictAt), r.ID) // it goes, however long it has run
		default:
			p.started(r, r.Times.Admitted)
		}
	}
	for i := range s.Waiting {
		if at := s.Waiting[i].NotBefore; at.After(s.Now) {
			p.at(at, "")
		}
	}
	if err := p.note(p.Refresh()); err != nil {
		return nil, err
	}
	return p, p.submit(s.Submit)
}

// play is a snapshot under way.
type play struct {
	*world.World
	runs     RunTimes
	forecast Forecast
	missing  map[workload.ID]bool // of Bounds.Until, those that have not started
	timers   timers
	seq      int
	ending   map[workload.ID]int // the seq of the end of who runs
	played   *Played             // nil for a forecast
}

func (p *play) run(from time.Time, bounds Bounds) error {
	for ends := 0; len(p.timers) > 0; {
		switch next := p.timers[0]; {
		case len(bounds.Until) > 0 && len(p.missing) == 0,
			bounds.Ends > 0 && ends >= bounds.Ends,
			bounds.Enough != nil && bounds.Enough(),
			bounds.Horizon > 0 && next.at.Sub(from) > bounds.Horizon:
			return nil
		}
		ended, err := p.next()
		if err != nil {
			return err
		}
		if ended {
			ends++
		}
	}
	return nil
}

// next plays the next timer, and reports whether a gang ended.
func (p *play) next() (ended bool, err error) {
	next := heap.Pop(&p.timers).(timer)
	p.Jump(latest(p.Now(), next.at))
	if next.id == "" { // a back-off is over
		return false, p.note(p.Refresh())
	}
	if p.ending[next.id] != next.seq { // it was evicted meanwhile
		return false, nil
	}
	return true, p.end(next.id)
}

// submit plays the submission of gangs.
func (p *play) submit(gangs []Submission) error {
	for _, w := range gangs {
		steps, err := p.Submit(w.Workload, w.PriorityClass)
		if err != nil {
			if p.forecast.Refused == nil {
				p.forecast.Refused = map[workload.ID]string{}
			}
			p.forecast.Refused[w.ID] = err.Error()
			continue
		}
		if err := p.note(steps); err != nil {
			return err
		}
	}
	return nil
}

// end plays the end of a gang, or of the removal of one that is to go.
func (p *play) end(id workload.ID) error {
	delete(p.ending, id)
	r, known := p.Record(id)
	if !known || !r.Holding {
		return nil
	}
	goes := r.Phase == workload.Evicting || r.Phase == workload.Cancelling || r.Phase.Final()
	if !goes {
		steps, err := p.End(id, event.OutcomeSucceeded)
		if err != nil {
			return fmt.Errorf("play the end of %s: %w", id, err)
		}
		if err := p.note(steps); err != nil {
			return err
		}
	}
	steps, err := p.Gone(id)
	if err != nil {
		return fmt.Errorf("play that the pods of %s are gone: %w", id, err)
	}
	if p.played != nil {
		p.played.Freed(id, p.Now())
		if o := p.played.Outcomes[id]; o != nil && r.Phase != workload.Evicting {
			o.Ended = p.Now()
		}
	}
	if r.Phase != workload.Evicting { // that one waits again
		p.Forget(id)
	}
	return p.note(steps)
}

// note takes in what has happened.
func (p *play) note(steps []world.Step) error {
	for _, step := range steps {
		if p.played != nil {
			p.played.Step(step.At, &step.Record)
		}
		switch step.Phase {
		case workload.Admitted:
			if _, known := p.forecast.Starts[step.ID]; !known {
				p.forecast.Starts[step.ID] = step.At
			}
			delete(p.missing, step.ID)
			p.started(&step.Record, step.At)
		case workload.Evicting:
			p.forecast.Evicted = append(p.forecast.Evicted, step.ID)
			p.at(latest(step.At, step.EvictAt), step.ID)
		case workload.Queued:
			delete(p.ending, step.ID)
			if step.NotBefore.After(step.At) {
				p.at(step.NotBefore, "")
			}
		case workload.Cancelling:
			p.at(latest(step.At, step.EvictAt), step.ID)
		}
	}
	return nil
}

// started sets when a gang that was admitted at a time will end.
func (p *play) started(r *workload.Record, admitted time.Time) {
	total, known := p.runs.Predict(&r.Workload, max(0, p.Now().Sub(admitted)))
	if !known {
		p.forecast.Endless = append(p.forecast.Endless, r.ID)
		return
	}
	p.at(latest(p.Now(), admitted.Add(total)), r.ID)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// at sets a timer at which a gang ends, or without one at which a back-off is over.
func (p *play) at(when time.Time, id workload.ID) {
	p.seq++
	if id != "" {
		p.ending[id] = p.seq
	}
	heap.Push(&p.timers, timer{when, p.seq, id})
}
