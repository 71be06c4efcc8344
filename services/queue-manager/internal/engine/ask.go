package engine

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
)

const (
	// AskFor is how long answers are waited for before the book acts on what was not
	// observed.
	AskFor = 10 * time.Second
	// announceTimes is how often a term is announced, a tick apart: no stream keeps
	// what is asked.
	announceTimes = 10
)

// ask asks the watchers and dispatchers what the book wants to know, with each tick
// until there is an answer; and tells them that another queue-manager leads.
func (e *engine) ask(epoch int64) {
	if e.decide && e.announced < announceTimes {
		e.announced++
		for _, cluster := range e.book.Clusters() {
			e.want(event.ReportWanted{Cluster: cluster, Epoch: epoch})
		}
	}
	questions := e.book.Questions(e.clock.now())
	e.Metrics.asking.Set(float64(len(questions)))
	for _, q := range questions {
		e.want(event.ReportWanted{Cluster: q.Cluster, Epoch: epoch, Workload: q.Workload, Node: q.Node, Ask: q.Ask})
	}
}

// want asks once. What fails is asked again with the next tick.
func (e *engine) want(wanted event.ReportWanted) {
	id := fmt.Sprintf("queue-manager/ask/%d/%s", wanted.Epoch, wanted.Ask)
	asked, err := event.New(id, "muster/queue-manager", time.Now(), &wanted)
	if err == nil {
		err = e.Bus.Tell(bus.AskSubject(wanted.Cluster), asked)
	}
	if err != nil {
		e.Logger.Warn("cannot ask a cluster", zap.String("cluster", wanted.Cluster), zap.Error(err))
	}
}
