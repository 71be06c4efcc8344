package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

const (
	// demandEvery bounds how often the demand is computed; it is when the state has changed,
	// and with demandAgain, because flavors take turns.
	demandEvery = 5 * time.Second
	// demandAgain is how often an unchanged demand is published again.
	demandAgain = time.Minute
	// demandShapes bounds the shapes of a message, demandResources those of the metric.
	demandShapes    = 100
	demandResources = 20
)

// demand is what waiting gangs lack. The loop of the term computes and publishes it; answer
// is for others.
type demand struct {
	version   int64 // of the state that it was computed from
	computed  time.Time
	published time.Time
	count     int // of messages
	answer    atomic.Pointer[query.DemandAnswer]
}

// publishDemand computes the demand when the state has changed, and publishes it when it has
// changed.
func (l *leader) publishDemand() {
	now, d := l.clock.now(), &l.demand
	if !l.decide {
		return
	}
	last := d.answer.Load()
	changed := false
	if version := l.state.Version(); last == nil || version != d.version && now.Sub(d.computed) >= demandEvery || now.Sub(d.computed) >= demandAgain {
		found := l.state.Demand(demandShapes, now)
		d.version, d.computed = version, now
		if last == nil || !reflect.DeepEqual(last.Demand, found) {
			last, changed = &query.DemandAnswer{At: now.UTC(), Demand: found}, true
			d.answer.Store(last)
			l.Metrics.demand(last)
		}
	}
	if !changed && now.Sub(d.published) < demandAgain {
		return
	}
	d.published = now
	d.count++
	message, err := event.New(fmt.Sprintf("queue-manager/demand/%d/%d", l.epoch, d.count), event.QueueManagerSource, now, &event.DemandChanged{Epoch: l.epoch, Demand: last.Demand})
	if err == nil {
		err = l.Bus.Notify(event.DemandSubject, message)
	}
	if err != nil { // it comes again
		l.Logger.Warn("cannot publish the demand", zap.Error(err))
	}
}

// serveDemand answers what waiting gangs lack, until ctx ends.
func (l *leader) serveDemand(ctx context.Context) error {
	return query.Handle(ctx, l.Bus.Conn(), query.DemandSubject, func(context.Context, struct{}) (query.DemandAnswer, error) {
		if answer := l.demand.answer.Load(); answer != nil {
			return *answer, nil
		}
		return query.DemandAnswer{}, errors.New("the demand is not computed yet: the term has just begun; try again")
	})
}

// demand sets the metrics of what waiting gangs lack.
func (m *Metrics) demand(d *query.DemandAnswer) {
	m.unmetGangs.Set(float64(d.Gangs))
	m.unmetPods.Set(float64(d.Pods))
	m.unmet.Reset()
	requested := d.Requested()
	for i, name := range requested.Names() {
		if i >= demandResources {
			return
		}
		m.unmet.WithLabelValues(string(name)).Set(inUnits(name, requested[name]))
	}
}

// inUnits is an amount in the unit of its resource: milli-units of CPU become cores.
func inUnits(name resource.Name, amount int64) float64 {
	if name == resource.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}
