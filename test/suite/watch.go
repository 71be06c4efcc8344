package suite

import (
	"context"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// look asks for what lives, and for each gang of which no answer tells. There may be
// no answer for a while.
func (w *world) look(queries *query.Client) {
	live, answered := w.ask(queries, query.WorkloadsRequest{Phases: livePhases()})
	if !answered {
		return
	}
	seen := map[workload.ID]bool{}
	for _, record := range live {
		seen[record.ID] = true
	}
	for _, name := range w.silent(seen) {
		if _, answered := w.ask(queries, query.WorkloadsRequest{Name: name, Namespace: w.access.Namespace}); !answered {
			return
		}
	}
}

func livePhases() []workload.Phase {
	return []workload.Phase{workload.Queued, workload.Admitted, workload.Dispatched, workload.Running, workload.Evicting, workload.Cancelling}
}

// ask takes in one answer.
func (w *world) ask(queries *query.Client, request query.WorkloadsRequest) (records []workload.Record, answered bool) {
	ctx, cancel := context.WithTimeout(w.ctx, askTimeout)
	defer cancel()
	answer, err := queries.Workloads(ctx, request)
	if err != nil {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, record := range answer.Workloads {
		g := w.known(record)
		if g != nil {
			g.note(record)
		}
		switch {
		case g == nil:
			w.breach("workload %s was never submitted", record.ID)
		case g.older && g.phase.Final() && !record.Phase.Final(): // its end is lost
			g.phase, g.older, g.tried = record.Phase, false, time.Time{}
		case g.phase.Final() && record.Phase != g.phase:
			w.breach("gang %s was %s and is %s", g.name, g.phase, record.Phase)
		case g.phase != record.Phase:
			g.phase, g.tried = record.Phase, time.Time{}
		}
	}
	return answer.Workloads, true
}

// note keeps what shows that a gang was evicted for another one, or has grown.
func (g *gang) note(record workload.Record) {
	pods := 0
	for _, placement := range record.Placements {
		pods += placement.Pods
	}
	g.grew = g.grew || g.kind == growing && pods > grownFrom
	g.preempted = g.preempted || record.Reason != nil && record.Reason.Kind == workload.ReasonPreempted
}

// silent lists the names of the gangs that are not among those that live: they have
// ended, or have had no answer for so long that they are to be submitted again.
func (w *world) silent(live map[workload.ID]bool) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, g := range w.submitted {
		overdue := g.phase == "" && !g.tried.IsZero() && time.Since(g.tried) >= againAfter
		if !live[id] && !g.phase.Final() && (g.phase != "" || overdue) {
			names = append(names, g.name)
		}
	}
	return names
}

// againAfter is how long a submitter waits for an answer.
const againAfter = 3 * time.Second

func (w *world) act(id workload.ID, g *gang) {
	if time.Since(g.tried) < againAfter {
		return
	}
	switch g.phase {
	case "":
		w.submitGang(g)
	case workload.Running:
		if !w.mayEnd(g) {
			break
		}
		cancel, err := event.New(event.NewID(), source, time.Now(), &event.WorkloadCancel{Workload: id, Why: "it has run"})
		if err != nil {
			w.breach("cancel %s: %v", g.name, err)
			return
		}
		w.publish(event.WorkloadSubject(g.queue), cancel)
	default:
		return
	}
	g.tried = time.Now()
}

// publish sends without waiting: the answer is what look sees.
func (w *world) publish(subject string, e event.Envelope) {
	encoded, err := e.Encode()
	if err != nil {
		w.breach("encode %s: %v", e.ID, err)
		return
	}
	// An id of its own: a repetition must reach Muster, not NATS' memory.
	_, _ = w.bus.PublishEncoded(subject, event.NewID(), encoded, 0)
}
