package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/manifest"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/submission"
)

// errDiffers ends the story where it cannot go on: a check has failed.
var errDiffers = errors.New("the story did not go as it should")

// story is what the telling needs.
type story struct {
	bus       *bus.Bus
	queries   *query.Client
	observer  *observer
	report    *report
	queue     string
	namespace string
	patience  time.Duration // for each thing that should happen
	gangs     []*gang
}

// gang is one workload of the story.
type gang struct {
	life *follow.Life
	// record is the last that was reported of it.
	record workload.Record
	// freed is when the room for it was given up; zero when there was room.
	freed time.Time
}

// submit sends a manifest and waits until it is accepted.
func (s *story) submit(ctx context.Context, document manifest.Document) (*gang, error) {
	sent, err := submission.New(document, submission.Options{Source: "muster-demo"}, time.Now())
	if err != nil {
		return nil, err
	}
	life, err := follow.Start(ctx, s.bus, s.queue, sent.Workload)
	if err != nil {
		return nil, err
	}
	if err := sent.Send(ctx, s.bus, s.queue, ""); err != nil {
		return nil, err
	}
	g := &gang{life: life}
	if err := s.await(ctx, g, func(workload.Record) bool { return true }); err != nil {
		return nil, err
	}
	if g.record.Phase == workload.Rejected {
		s.report.check(false, "%s is accepted: it is rejected: %s", document, output.Reason(g.record.Reason))
		return nil, errDiffers
	}
	s.gangs = append(s.gangs, g)
	asked := g.record.Requests()
	delete(asked, resource.Pods)
	s.report.note("submitted %s: workload %s, %d pods asking %s", document, g.record.ID, g.record.Pods(), asked)
	return g, nil
}

// errPatience is the cause of a wait that took too long.
var errPatience = errors.New("it took too long")

// await reads the gang's life until the condition holds. When it does not hold
// in time the error wraps errPatience.
func (s *story) await(ctx context.Context, g *gang, holds func(workload.Record) bool) error {
	bounded, cancel := context.WithTimeoutCause(ctx, s.patience, errPatience)
	defer cancel()
	for {
		step, err := g.life.Next(bounded)
		if err != nil && errors.Is(context.Cause(bounded), errPatience) {
			return fmt.Errorf("%w: %s", errPatience, s.patience)
		}
		if err != nil {
			return err
		}
		g.record = step.Record
		if holds(g.record) {
			return nil
		}
	}
}

// expect waits for a condition and checks that it came about.
func (s *story) expect(ctx context.Context, g *gang, what string, holds func(workload.Record) bool) error {
	if holds(g.record) {
		s.report.check(true, "%s %s", g.record.Name, what)
		return nil
	}
	err := s.await(ctx, g, func(r workload.Record) bool { return holds(r) || r.Phase.Final() })
	if err != nil && !errors.Is(err, errPatience) {
		return err
	}
	if s.report.check(holds(g.record), "%s %s", g.record.Name, what) {
		return nil
	}
	s.report.note("it is %s: %s", g.record.Phase, output.Reason(g.record.Reason))
	return errDiffers
}

func in(phase workload.Phase) func(workload.Record) bool {
	return func(r workload.Record) bool { return r.Phase == phase }
}

// expectRunning waits until the gang runs, and looks into the cluster whether it
// does, where the plan says.
func (s *story) expectRunning(ctx context.Context, g *gang) error {
	err := s.expect(ctx, g, "is admitted: a node is reserved for each pod", func(r workload.Record) bool {
		return len(r.Placements) > 0
	})
	if err != nil {
		return err
	}
	for _, p := range g.record.Placements {
		s.report.note("reserved: %d of %q on node %s", p.Pods, p.PodSet, p.Node)
	}
	if err := s.expect(ctx, g, "is running", in(workload.Running)); err != nil {
		return err
	}
	names, err := s.observer.rayClustersOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	s.report.check(len(names) == 1, "Kubernetes has its RayCluster, once: %q", names)
	pods, err := s.observer.podsOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	fault := misplaced(pods, g.record.Placements)
	if !s.report.check(fault == "", "Kubernetes has its %d pods, Running, each on its reserved node", len(pods)) {
		s.report.note("%s", fault)
	}
	return nil
}

// expectShortage waits until the gang is queued with its reason, and compares
// that with what the nodes have free.
func (s *story) expectShortage(ctx context.Context, g *gang, asked size) error {
	err := s.expect(ctx, g, "is queued, with a shortage as the reason", func(r workload.Record) bool {
		return r.Phase == workload.Queued && r.Reason != nil && r.Reason.Shortage != nil
	})
	if err != nil {
		return err
	}
	s.report.note("%s", g.record.Reason.Message)
	answer, err := s.queries.Nodes(ctx)
	if err != nil {
		return err
	}
	largest, sum := free(answer.Nodes, asked.scarce)
	short := g.record.Reason.Shortage
	exact := short.Resource == asked.scarce && short.Asked == asked.each && short.Unplaced == asked.replicas &&
		short.Largest == largest && short.Sum == sum
	if !s.report.check(exact, "the shortage is exact: %d of %d workers do not fit, each requests %s; free: %s on the best node, %s in sum",
		short.Unplaced, short.Pods, amount(short.Resource, short.Asked), amount(short.Resource, short.Largest), amount(short.Resource, short.Sum)) {
		s.report.note("the nodes show: %d workers do not fit, each requests %s; free: %s on the best node, %s in sum",
			asked.replicas, amount(asked.scarce, asked.each), amount(asked.scarce, largest), amount(asked.scarce, sum))
	}
	return nil
}

// expectNothing checks that nothing of a waiting gang exists.
func (s *story) expectNothing(ctx context.Context, g *gang) error {
	names, err := s.observer.rayClustersOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	pods, err := s.observer.podsOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	s.report.check(len(names) == 0 && len(pods) == 0, "nothing of %s exists in Kubernetes: %d RayClusters, %d pods",
		g.record.Name, len(names), len(pods))
	return nil
}

// cancel ends a gang and checks that nothing of it is left.
func (s *story) cancel(ctx context.Context, g *gang) error {
	if err := submission.Cancel(ctx, s.bus, g.record, "the demo goes on", time.Now()); err != nil {
		return err
	}
	if err := s.expect(ctx, g, "is cancelled", in(workload.Cancelled)); err != nil {
		return err
	}
	return s.expectNothing(ctx, g)
}
