package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

const (
	// pollAfter is when a workload is looked at again in case a change was missed.
	pollAfter = 2 * time.Second
	// removeWithin bounds how long an object that cannot be removed keeps the places of
	// its workload, once no pod runs on them.
	removeWithin = 5 * time.Minute
)

// tools are what every pass works with.
type tools struct {
	cluster     Cluster
	workloads   *workloads
	truth       Truth // nil: queue-manager is not asked
	cache       Cache
	queue       Schedule
	reports     *reports
	permissions permissionChecker
	owners      *owners
	placer      *placer
	shown       *shownPods
	reaper      *reaper
	unplanned   *unplannedPods
	logger      *zap.Logger
	metrics     *Metrics
	permission  Permission // nil: nothing that needs it is created
	carrier     Carrier    // nil: nothing is copied from other clusters
	fetches     *fetches
	tracer      tracing.Tracer
	now         func() time.Time
}

// pass is one look at one workload. Its methods do the next step and return when to
// look again at the latest; zero means when something changes.
type pass struct {
	*tools
	workload *tracked
	command  *event.GangCommand
	status   event.GangStatus    // that the pass reports
	left     []kubernetes.Object // that are being deleted and still there
	// The objects of the command: see readObjects.
	creation creation
	presence presence
	timing   timing
}

// newPass returns a pass that begins with the last status of the command's attempt.
func (t *tools) newPass(workload *tracked, command *event.GangCommand) *pass {
	status := workload.lastOf(command)
	status.Created = status.Created || command.Created
	return &pass{tools: t, workload: workload, command: command, status: status}
}

// run does the next step for the workload.
func (p *pass) run(ctx context.Context) (time.Duration, error) {
	if err := p.readObjects(); err != nil {
		return p.unreadable(ctx, err)
	}
	switch {
	case p.command.State == event.Provision:
		return p.provision(ctx)
	case p.command.State == event.Present:
		return p.present(ctx)
	case p.command.Provision != nil:
		requests := p.removeRequests(ctx, "") // what keeps one does not keep a gang that runs
		again, err := p.takeDown(ctx)
		again, err = p.boundRemoval(ctx, again, err)
		return again, errors.Join(err, requests)
	}
	again, err := p.takeDown(ctx)
	return p.boundRemoval(ctx, again, err)
}

// unreadable deals with a manifest of which no objects can be made.
func (p *pass) unreadable(ctx context.Context, cause error) (time.Duration, error) {
	switch {
	case p.command.State == event.Provision:
		p.requestStatus()
		return p.requestRefused(ctx, finalError{cause})
	case p.command.State != event.Present:
		return p.boundRemoval(ctx, 0, cause)
	case p.status.Refused:
		return 0, p.report(ctx)
	}
	return p.refuse(ctx, cause)
}

// present does the next step towards the objects and their pods being there.
func (p *pass) present(ctx context.Context) (time.Duration, error) {
	if p.status.Refused {
		return 0, p.report(ctx)
	}
	if p.forbidden() {
		return p.awaitPermission(ctx)
	}
	if back, is := p.workload.rollingBack(p.command.Attempt); is {
		return p.rollBack(ctx, back)
	}
	if p.status.Gone {
		return p.afterGone(ctx)
	}
	seen, err := p.presence.observe(ctx, p)
	if err != nil {
		return 0, err
	}
	if seen.standing == absent {
		return p.create(ctx)
	}
	again := p.keepCarried(ctx, seen)
	next, err := p.watch(ctx, seen)
	return sooner(next, again), err
}

// report publishes the status if it is news.
func (p *pass) report(ctx context.Context) error {
	return p.reports.report(ctx, p.workload, p.status)
}

// refuse reports that the workload cannot be created, for good or until an administrator
// mends the cause.
func (p *pass) refuse(ctx context.Context, cause error) (time.Duration, error) {
	p.metrics.refused.Inc()
	p.logger.Warn("object refused", zap.String("workload", string(p.status.Workload)), zap.Error(cause))
	taken := p.command.Home != "" && errors.Is(cause, errForeign) // the name is not the user's choice
	p.status.Refused, p.status.Mendable, p.status.Message = true, taken || mendable(cause), cause.Error()
	return 0, p.report(ctx)
}

// fields name the workload and its object in a log line.
func (p *pass) fields() []zap.Field {
	c := p.command
	return []zap.Field{
		zap.String("workload", string(c.Workload)), zap.Int("attempt", c.Attempt),
		zap.String("kind", c.Kind), zap.String("namespace", c.Namespace), zap.String("name", c.Name),
	}
}

// name is how messages call the object of the command.
func (p *pass) name() string {
	return fmt.Sprintf("%s %s/%s", p.command.Kind, p.command.Namespace, p.command.Name)
}

// trace adds what was done in Kubernetes to the workload's trace.
func (p *pass) trace(name string, began time.Time, err error) {
	p.tracer.Continue(p.command.Workload, p.workload.trace(), name, began, "muster.cluster", p.command.Cluster,
		"k8s.kind", p.command.Kind, "k8s.namespace.name", p.command.Namespace, "k8s.name", p.command.Name).End(err)
}

// sooner is the earlier of two looks; zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
