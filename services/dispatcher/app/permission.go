package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/services/dispatcher/internal/permission"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

const (
	// requestsWithin bounds what is asked of the API server and of NATS for a permission at once.
	requestsWithin = 5 * time.Second
	// asksAgain is how long a process without a permission waits for an answer.
	asksAgain = 5 * time.Second
	// sameFault is how long the same trouble is not logged again.
	sameFault = time.Minute
)

// obey stops what needs the permission of the cluster when that has ended, until ctx ends
// or the returned function is called, which waits for that.
func obey(ctx context.Context, keeper *permission.Keeper, logger *zap.Logger) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var troubles, endings repeated
		for {
			stops, byWall := keeper.Stops(), keeper.EndsByWall()
			err := keeper.Look(ctx)
			if n := keeper.Stops() - stops; n > 0 {
				logger.Warn("permission has run out; stopped what needs it", zap.Int("objects", n))
			}
			if keeper.EndsByWall() > byWall {
				logger.Warn("permission has ended by the wall clock of this process, which was started after it was given; the clock may be ahead")
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, permission.ErrChanged) && troubles.isNews(err.Error()) {
				logger.Warn("cannot enforce the permission of the cluster; retrying", zap.Error(err))
			}
			if ending := keeper.Ending(); len(ending) > 0 && endings.isNews(strings.Join(ending, ", ")) {
				logger.Info("stopped objects are still terminating", zap.Strings("objects", ending))
			}
			if pause.For(ctx, permission.LookEvery) != nil {
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// repeated keeps the same line from being logged again and again.
type repeated struct {
	text string
	at   time.Time
}

func (r *repeated) isNews(text string) bool {
	if text == r.text && time.Since(r.at) < sameFault {
		return false
	}
	r.text, r.at = text, time.Now()
	return true
}

// connect connects to NATS. A process of a cluster that has a permission goes on trying: it
// obeys that meanwhile.
func (d *dispatcher) connect(ctx context.Context) (*bus.Bus, error) {
	for {
		b, err := d.config.NATS.Connect(ctx, "dispatcher-"+d.config.Cluster, d.logger)
		if err == nil || !d.permission.Known(ctx) {
			return b, err
		}
		d.logger.Warn("cannot reach NATS; retrying, and obeying the permission of the cluster meanwhile", zap.Error(err))
		if err := pause.For(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// connection says when it was made again.
type connection interface {
	Reconnected() (<-chan struct{}, func())
}

// permitted is the permission during one term.
type permitted struct {
	keeper     *permission.Keeper
	reconciler *reconcile.Reconciler
	reporter   *reporter
	epoch      int64
	granted    chan *event.PermissionGranted
	connection connection
	logger     *zap.Logger

	reportedGone bool      // queue-manager, that nothing is left of what was there
	askedAt      time.Time // when this term asked last
}

// renew asks for the permission again and again, once all commands are read: so what was
// commanded to be removed is known before the cluster may keep anything.
func (p *permitted) renew(ctx context.Context, caughtUp <-chan struct{}) error {
	tick := time.NewTicker(p.keeper.Every())
	defer tick.Stop()
	due := time.NewTicker(time.Second)
	defer due.Stop()
	reconnected, done := p.connection.Reconnected()
	defer done()
	p.awaitCommands(ctx, caughtUp)
	p.ask(ctx)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case g := <-p.granted:
			if p.keeper.Granted(g) {
				p.store(ctx)
			}
		case <-reconnected:
			p.reportedGone = false // gangs may have failed over meanwhile
			p.ask(ctx)
		case <-tick.C:
			p.ask(ctx)
		case <-due.C:
			waits := !p.reportedGone || p.reconciler.NeedsPermission() && !p.keeper.Valid()
			if waits && time.Since(p.askedAt) >= asksAgain {
				p.ask(ctx) // the first that needs it waits, or something is still being removed
			}
			if p.keeper.Waits() {
				p.store(ctx)
			}
		}
	}
}

// awaitCommands returns when all commands are read that there are. Permissions among them
// are answers to others.
func (p *permitted) awaitCommands(ctx context.Context, caughtUp <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.granted:
		case <-caughtUp:
			return
		}
	}
}

// ask asks for the permission where something needs it, or did, and once in each term and after
// each new connection.
func (p *permitted) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestsWithin)
	defer cancel()
	asked, err := p.keeper.Ask(ctx, p.reporter.cluster, p.epoch, p.reconciler.NeedsPermission(), !p.reportedGone)
	if errors.Is(err, permission.ErrStopping) {
		return // tried again within a second
	}
	p.askedAt = time.Now()
	if err == nil && asked != nil {
		err = p.reporter.publish(ctx, event.PermissionAskedSubject(p.reporter.cluster), asked, 0)
	}
	if p.reportedGone = p.reportedGone || err == nil; err != nil && ctx.Err() == nil {
		p.logger.Warn("cannot request the permission of the cluster; retrying", zap.Error(err))
	}
}

// store stores what was granted, and has what waited for it looked at.
func (p *permitted) store(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestsWithin)
	defer cancel()
	was := p.keeper.Valid()
	if err := p.keeper.Store(ctx, p.reconciler.IsCommanded); err != nil && ctx.Err() == nil && !errors.Is(err, permission.ErrChanged) && !errors.Is(err, permission.ErrStopping) {
		p.logger.Warn("cannot store the permission of the cluster; retrying", zap.Error(err))
	}
	if !was && p.keeper.Valid() {
		p.reconciler.LookAtPermitted()
	}
}

// permissionMetrics shows how long the permission lasts, and what was stopped without.
func permissionMetrics(registry *prometheus.Registry, keeper *permission.Keeper) {
	registry.MustRegister(
		left{keeper, prometheus.NewDesc("muster_dispatcher_permission_seconds",
			"For how long the gangs of queues that fail over may be kept without another answer of queue-manager; no sample where none was ever given.", nil, nil)},
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "muster_dispatcher_permission_stopped_total", Help: "Objects and pods deleted because the permission to keep them had run out.",
		}, func() float64 { return float64(keeper.Stops()) }),
	)
}

// left is how long the permission lasts, where there is one or was.
type left struct {
	keeper *permission.Keeper
	desc   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (l left) Describe(all chan<- *prometheus.Desc) { all <- l.desc }

// Collect implements prometheus.Collector.
func (l left) Collect(all chan<- prometheus.Metric) {
	if l.keeper.Stored() {
		all <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, l.keeper.Left().Seconds())
	}
}
