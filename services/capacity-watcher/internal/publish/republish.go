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

// republication is the state of what is published again without a change: a message may be
// lost while the connection is up.
type republication struct {
	looks   int
	round   bus.Round
	rest    []observed.Key // not yet repeated in this round
	all     int            // size of this round
	manager int64          // the latest epoch of queue-manager that asked
}

// CompareStream marks for publication what the stream has lost. It must not overlap
// PublishChanges.
func (p *Publisher) CompareStream(ctx context.Context) {
	p.republication.looks++
	p.compareStream(ctx, p.republication.looks%listEach == 1)
}

func (p *Publisher) compareStream(ctx context.Context, list bool) {
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
	p.ScheduleList() // removals may have been lost, too
}

// RepublishNext marks the next part of the observed state for publication, so that a round
// of bus.RoundTakes publishes all of it once.
func (p *Publisher) RepublishNext() {
	p.Apply(func(seen *observed.Cache) {
		if len(p.republication.rest) == 0 {
			p.republication.rest = keysOf(seen)
			p.republication.all = len(p.republication.rest)
		}
		n := min(p.republication.round.Step(p.republication.all), len(p.republication.rest))
		seen.MarkChanged(p.republication.rest[:n]...)
		p.republication.rest = p.republication.rest[n:]
	})
}

// Answer marks for publication what queue-manager asks for. It must not overlap
// PublishChanges.
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
	case q.Epoch != p.republication.manager: // a new leader, which has read the stream
		p.republication.manager = q.Epoch
		p.republication.round.Hasten()
		p.compareStream(ctx, true)
	}
}

// keysOf lists every observed node, gang and namespace, sorted.
func keysOf(seen *observed.Cache) []observed.Key {
	nodes, gangs := seen.Seen()
	keys := make([]observed.Key, 0, len(nodes)+len(gangs))
	for _, node := range nodes {
		keys = append(keys, observed.Key{Node: node})
	}
	for _, gang := range gangs {
		keys = append(keys, observed.Key{Gang: gang})
	}
	for _, namespace := range seen.Namespaces() {
		keys = append(keys, observed.Key{Namespace: namespace})
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
