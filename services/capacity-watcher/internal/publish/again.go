package publish

import (
	"context"

	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

const (
	// lookEvery is the period of checks for values that the stream has lost; each
	// listEach-th check compares the subjects one by one.
	lookEvery = 5 * time.Second
	listEach  = 12
	// answersMost bounds the pending requests; queue-manager repeats the others.
	answersMost = 4096
)

// again is the state of repetitions without a change: a message may be lost while the
// connection is up.
type again struct {
	looks   int
	round   bus.Round
	rest    []observed.Key // not yet repeated in this round
	all     int            // size of this round
	manager int64          // the latest epoch of queue-manager that asked
}

// Look marks for publication what the stream has lost. It must not overlap Tell.
func (p *Publisher) Look(ctx context.Context) {
	p.again.looks++
	p.look(ctx, p.again.looks%listEach == 1)
}

func (p *Publisher) look(ctx context.Context, list bool) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	lost, err := p.values.Lost(ctx, p.Bus, event.CapacityFilter(p.Cluster), list)
	if err != nil {
		if ctx.Err() == nil {
			p.Logger.Warn("cannot compare the stream with published observations", zap.Error(err))
			p.restore(ctx, err)
		}
		return
	}
	if len(lost) == 0 {
		return
	}
	p.Metrics.lost.Add(float64(len(lost)))
	p.Logger.Warn("stream has lost observations; republishing them", zap.String("stream", bus.CapacityStream), zap.Int("lost", len(lost)))
	subjects := make(map[string]bool, len(lost))
	for _, subject := range lost {
		subjects[subject] = true
	}
	p.Apply(func(seen *observed.Cache) {
		for _, key := range keysOf(seen) {
			if subjects[p.subject(key)] {
				seen.MarkChanged(key)
			}
		}
	})
	p.List() // removals may have been lost, too
}

// Repeat marks a part of the observed state for publication, so that a round of
// bus.RoundTakes repeats all of it.
func (p *Publisher) Repeat() {
	p.Apply(func(seen *observed.Cache) {
		if len(p.again.rest) == 0 {
			p.again.rest = keysOf(seen)
			p.again.all = len(p.again.rest)
		}
		n := min(p.again.round.Step(p.again.all), len(p.again.rest))
		seen.MarkChanged(p.again.rest[:n]...)
		p.again.rest = p.again.rest[n:]
	})
}

// Answer marks for publication what queue-manager asks for. It must not overlap Tell.
func (p *Publisher) Answer(ctx context.Context, q *event.ReportWanted) {
	key := observed.Key{Node: q.Node, Gang: q.Workload}
	switch {
	case q.Cluster != p.Cluster || q.Node != "" && q.Workload != "":
	case key != observed.Key{}:
		p.Apply(func(seen *observed.Cache) {
			if len(p.answers) < answersMost {
				p.answers[key] = q.Ask
				seen.MarkChanged(key)
			}
		})
	case q.Epoch != p.again.manager: // a new leader, which has read the stream
		p.again.manager = q.Epoch
		p.again.round.Hasten()
		p.look(ctx, true)
	}
}

// keysOf lists every observed node and gang, sorted.
func keysOf(seen *observed.Cache) []observed.Key {
	nodes, gangs := seen.Seen()
	keys := make([]observed.Key, 0, len(nodes)+len(gangs))
	for _, node := range nodes {
		keys = append(keys, observed.Key{Node: node})
	}
	for _, gang := range gangs {
		keys = append(keys, observed.Key{Gang: gang})
	}
	return keys
}

// answering returns the observation as the answer to a request.
func answering(payload event.Payload, ask string) event.Payload {
	switch observed := payload.(type) {
	case *event.NodeObserved:
		observed.Answers = ask
	case *event.GangObserved:
		observed.Answers = ask
	}
	return payload
}
