package engine

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
)

const (
	// AskFor is how long answers are waited for before a workload's reason names who is
	// silent, and half of how long an answer counts.
	AskFor = 10 * time.Second
	// announceTimes is how often a term is announced, a tick apart: no stream keeps
	// what is asked.
	announceTimes = 10
)

// ask sends what the state wants to know to watchers and dispatchers, with each tick
// until there is an answer. It announces the term to them, too.
func (l *leader) ask() {
	if l.decide && l.announced < announceTimes {
		l.announced++
		for _, cluster := range l.state.Clusters() {
			l.want(event.ReportWanted{Cluster: cluster, Epoch: l.epoch})
		}
	}
	questions := l.state.Questions()
	l.Metrics.asking.Set(float64(len(questions)))
	for _, q := range questions {
		l.want(event.ReportWanted{Cluster: q.Cluster, Epoch: l.epoch, Workload: q.Workload, Node: q.Node, Ask: q.Ask})
	}
}

// want sends one question. What fails is sent again with the next tick.
func (l *leader) want(wanted event.ReportWanted) {
	id := fmt.Sprintf("queue-manager/ask/%d/%s", wanted.Epoch, wanted.Ask)
	asked, err := event.New(id, event.QueueManagerSource, time.Now(), &wanted)
	if err == nil {
		err = l.Bus.Notify(event.AskSubject(wanted.Cluster), asked)
	}
	if err != nil {
		l.Logger.Warn("cannot publish an inquiry to a cluster", zap.String("cluster", wanted.Cluster), zap.Error(err))
	}
}
