package publish

import (
	"context"

	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/capacity-watcher/internal/picture"
)

const (
	// lookEvery is how often is looked whether the stream has lost values; with each
	// listEach-th look the subjects are compared one by one.
	lookEvery = 5 * time.Second
	listEach  = 12
	// answersMost bounds the questions that wait for an answer; who asks does so again.
	answersMost = 4096
)

// again is what is repeated although it is no news: a message may be lost while the
// connection stands.
type again struct {
	looks   int
	round   bus.Round
	rest    []picture.Key // of the present round
	all     int           // of the present round
	manager int64         // the latest epoch of queue-manager that asked
}

// Look has everything published again that the stream has lost. It must not overlap
// Tell.
func (p *Publisher) Look(ctx context.Context) {
	p.again.looks++
	p.look(ctx, p.again.looks%listEach == 1)
}

func (p *Publisher) look(ctx context.Context, list bool) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	lost, err := p.values.Lost(ctx, p.Bus, bus.CapacityFilter(p.Cluster), list)
	if err != nil {
		if ctx.Err() == nil {
			p.Logger.Warn("cannot compare the stream with what was published", zap.Error(err))
			p.restore(ctx, err)
		}
		return
	}
	if len(lost) == 0 {
		return
	}
	p.Metrics.lost.Add(float64(len(lost)))
	p.Logger.Warn("stream has lost observations: publishing them again", zap.String("stream", bus.CapacityStream), zap.Int("lost", len(lost)))
	subjects := make(map[string]bool, len(lost))
	for _, subject := range lost {
		subjects[subject] = true
	}
	p.Apply(func(seen *picture.Picture) {
		for _, key := range keysOf(seen) {
			if subjects[p.subject(key)] {
				seen.Retell(key)
			}
		}
	})
	p.List() // what is gone may have been lost, too
}

// Repeat has a part of everything published again, so that in a round of
// bus.RoundTakes all of it is.
func (p *Publisher) Repeat() {
	p.Apply(func(seen *picture.Picture) {
		if len(p.again.rest) == 0 {
			p.again.rest = keysOf(seen)
			p.again.all = len(p.again.rest)
		}
		n := min(p.again.round.Step(p.again.all), len(p.again.rest))
		seen.Retell(p.again.rest[:n]...)
		p.again.rest = p.again.rest[n:]
	})
}

// Answer has published again what queue-manager asks for. It must not overlap Tell.
func (p *Publisher) Answer(ctx context.Context, q *event.ReportWanted) {
	key := picture.Key{Node: q.Node, Gang: q.Workload}
	switch {
	case q.Cluster != p.Cluster || q.Node != "" && q.Workload != "":
	case key != picture.Key{}:
		p.Apply(func(seen *picture.Picture) {
			if len(p.answers) < answersMost {
				p.answers[key] = q.Ask
				seen.Retell(key)
			}
		})
	case q.Epoch != p.again.manager: // another one leads, and knows what the stream has
		p.again.manager = q.Epoch
		p.again.round.Hasten()
		p.look(ctx, true)
	}
}

// keysOf lists everything that is seen, sorted.
func keysOf(seen *picture.Picture) []picture.Key {
	nodes, gangs := seen.Seen()
	keys := make([]picture.Key, 0, len(nodes)+len(gangs))
	for _, node := range nodes {
		keys = append(keys, picture.Key{Node: node})
	}
	for _, gang := range gangs {
		keys = append(keys, picture.Key{Gang: gang})
	}
	return keys
}

// answering returns the observation as the answer to a question.
func answering(payload event.Payload, ask string) event.Payload {
	switch observed := payload.(type) {
	case *event.NodeObserved:
		observed.Answers = ask
	case *event.GangObserved:
		observed.Answers = ask
	}
	return payload
}
