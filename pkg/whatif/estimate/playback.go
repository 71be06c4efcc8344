package estimate

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Event is something that came in from outside: a submission, a request, a node, or other
// settings.
type Event struct {
	At time.Time
	// Payload is the message; nil for Settings.
	Payload  event.Payload
	Settings *state.Settings
}

// Outcome is what became of a workload.
type Outcome struct {
	ID        workload.ID `json:"id"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Queue     string      `json:"queue"`
	Submitted time.Time   `json:"submitted"`
	// Started is its first admission, and Ended when its places were free for good.
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	Cluster   string    `json:"cluster,omitempty"`
	Evictions int       `json:"evictions,omitempty"`
	// Refused is why it was not accepted.
	Refused string `json:"refused,omitempty"`
}

// Played is what became of all workloads of a history.
type Played struct {
	Outcomes map[workload.ID]*Outcome
	// Held is what workloads held, in units of resources times seconds, from the beginning on.
	Held  map[resource.Name]float64
	began time.Time
	// holding are those that hold places, since when and what.
	holding map[workload.ID]holding
	// evicting are those whose eviction is counted.
	evicting map[workload.ID]bool
}

type holding struct {
	since    time.Time
	requests resource.List
}

// NewPlayed is one of nothing, which began at a time.
func NewPlayed(began time.Time) *Played {
	return &Played{
		Outcomes: map[workload.ID]*Outcome{}, Held: map[resource.Name]float64{}, began: began,
		holding: map[workload.ID]holding{}, evicting: map[workload.ID]bool{},
	}
}

// of is the outcome of a workload.
func (p *Played) of(w *workload.Workload, submitted time.Time) *Outcome {
	o := p.Outcomes[w.ID]
	if o == nil {
		o = &Outcome{ID: w.ID, Namespace: w.Namespace, Name: w.Name, Queue: w.Queue, Submitted: submitted}
		p.Outcomes[w.ID] = o
	}
	return o
}

// Live adds a workload that was there at the beginning. What it held before does not count.
func (p *Played) Live(r *workload.Record) {
	o := p.of(&r.Workload, r.Times.Submitted)
	if r.Holding {
		o.Started, o.Cluster = r.Times.Admitted, r.Cluster
		p.holding[r.ID] = holding{latest(p.began, r.Times.Admitted), r.Requests()}
	}
}

// Step applies a step of a workload's life.
func (p *Played) Step(at time.Time, r *workload.Record) {
	o := p.of(&r.Workload, r.Times.Submitted)
	o.Queue = r.Queue
	switch r.Phase {
	case workload.Admitted:
		p.admitted(o, at, r.Cluster, r.Requests())
	case workload.Evicting:
		p.evicted(o)
	default:
		if r.Phase.Final() && !r.Holding && o.Ended.IsZero() {
			o.Ended = at
		}
	}
}

func (p *Played) admitted(o *Outcome, at time.Time, cluster string, requests resource.List) {
	delete(p.evicting, o.ID)
	if o.Started.IsZero() {
		o.Started = at
	}
	if _, holds := p.holding[o.ID]; !holds {
		o.Cluster, p.holding[o.ID] = cluster, holding{at, requests}
	}
}

func (p *Played) evicted(o *Outcome) {
	if !p.evicting[o.ID] {
		p.evicting[o.ID] = true
		o.Evictions++
	}
}

// Freed ends what a workload held.
func (p *Played) Freed(id workload.ID, at time.Time) {
	h, holds := p.holding[id]
	if !holds {
		return
	}
	delete(p.holding, id)
	for name, amount := range h.requests {
		p.Held[name] += float64(amount) * max(0, at.Sub(h.since).Seconds())
	}
}

// Close sums what is held still, up to the end of the history.
func (p *Played) Close(end time.Time) {
	for id := range p.holding {
		p.Freed(id, end)
	}
}

// Playback plays a snapshot and what came in after it, up to a time. With fixed settings, those
// of the snapshot count to the end, whatever others came in.
func Playback(s Snapshot, events []Event, runs RunTimes, end time.Time, fixed bool) (*Played, error) {
	played := NewPlayed(s.Now)
	for i := range s.Running {
		played.Live(&s.Running[i])
	}
	for i := range s.Waiting {
		played.Live(&s.Waiting[i])
	}
	p, err := begin(s, runs, Bounds{})
	if err != nil {
		return nil, err
	}
	p.played = played
	// What was decided at the beginning has been noted as a forecast.
	for id, at := range p.forecast.Starts {
		if r, known := p.Record(id); known {
			played.admitted(played.of(&r.Workload, r.Times.Submitted), at, r.Cluster, r.Requests())
		}
	}
	for _, id := range p.forecast.Evicted {
		if r, known := p.Record(id); known {
			played.evicted(played.of(&r.Workload, r.Times.Submitted))
		}
	}
	for {
		switch {
		case len(p.timers) > 0 && (len(events) == 0 || !events[0].At.Before(p.timers[0].at)) && !p.timers[0].at.After(end):
			if _, err := p.next(); err != nil {
				return nil, err
			}
		case len(events) > 0 && !events[0].At.After(end):
			p.Jump(latest(p.Now(), events[0].At))
			if err := p.playEvent(events[0], fixed); err != nil {
				return nil, err
			}
			events = events[1:]
		default:
			played.Close(end)
			return played, nil
		}
	}
}

// playEvent plays what came in.
func (p *play) playEvent(e Event, fixed bool) error {
	if e.Settings != nil {
		if fixed {
			return nil
		}
		return p.note(p.Configure(e.Settings.Queues, e.Settings.Policy))
	}
	switch m := e.Payload.(type) {
	case *event.WorkloadSubmitted:
		steps, err := p.Submit(m.Workload, m.PriorityClass)
		if err != nil {
			p.played.of(&m.Workload, e.At).Refused = err.Error()
			return nil
		}
		p.played.of(&m.Workload, e.At)
		return p.note(steps)
	case *event.NodeObserved:
		return p.note(p.SetNode(m.Node))
	case *event.NodeRemoved:
		return p.note(p.RemoveNode(m.Cluster, m.Node))
	case event.Request:
		return p.note(p.Request(e.Payload))
	}
	return fmt.Errorf("play a message of %s: want a submission, a request or a node", e.Payload.EventType())
}
