package demo

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/muster-dev/internal/localstack"
	"muster.dev/muster/services/muster/examples"
)

// ClusterSilence is after which silence a cluster of the story gets no new gang.
const ClusterSilence = 10 * time.Second

// The clusters of the story: the stack's own, and the dearer one.
const (
	near = localstack.ClusterName
	far  = "cloud"
)

// RunClusters plays the story of two clusters under one queue-manager. The error is nil when
// all went as it should.
func RunClusters(ctx context.Context, o Options) error {
	return runStory(ctx, o, (*story).playClusters)
}

// statesPoll is how often clusters are looked at until they are as they should be.
const statesPoll = 200 * time.Millisecond

// sites are the clusters of the story.
type sites struct {
	*story
	far      *localstack.Member
	observed map[string]*observer
}

func (s *story) playClusters(ctx context.Context, o Options) error {
	c := &sites{story: s, observed: map[string]*observer{near: s.observer}}
	var err error
	if c.far, err = o.Stack.Join(ctx, far, "laptop"); err != nil {
		return err
	}
	if c.observed[far], err = newObserver(c.far.Admin); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{c.describe, c.overflow, c.lose, c.comeBack, c.drain} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// describe gives the clusters prices, as `muster cluster join` does.
func (c *sites) describe(ctx context.Context) error {
	c.report.step("Two clusters of two GPUs each, one queue-manager. A GPU in %s costs 1 an hour, in %s 3.", near, far)
	for name, price := range map[string]string{near: "1", far: "3"} {
		if err := c.join(ctx, name, price, false); err != nil {
			return err
		}
	}
	if err := c.awaitStates(ctx, map[string]string{near: query.ClusterReady, far: query.ClusterReady}); err != nil {
		return err
	}
	return c.table(ctx)
}

func (c *sites) join(ctx context.Context, name, price string, back bool) error {
	cost, err := quota.ParseCost(map[string]string{string(gpu): price})
	if err != nil {
		return fmt.Errorf("describe cluster %s: %w", name, err)
	}
	return c.order(ctx, query.HoldRequest{Join: &quota.Cluster{Name: name, Cost: cost}, Resume: back})
}

// order gives an operator's order about a cluster.
func (c *sites) order(ctx context.Context, r query.HoldRequest) error {
	r.By = "the demo"
	change, err := r.ConfigureRequest(time.Now())
	if err == nil {
		_, err = c.queries.Configure(ctx, "", change)
	}
	return err
}

// overflow fills the cheaper cluster, and then has a gang in the other one.
func (c *sites) overflow(ctx context.Context) (err error) {
	c.report.step("A gang of two GPUs goes to the cheaper cluster and fills it. The next one overflows.")
	if _, err := c.submitGang(ctx, "first", near); err != nil {
		return err
	}
	if _, err = c.submitGang(ctx, "second", far); err != nil {
		return err
	}
	c.report.step("A third one waits, with a reason for each cluster.")
	third, err := c.gangOf(ctx, "third")
	if err != nil {
		return err
	}
	if err := c.expect(ctx, third, "is queued", func(r workload.Record) bool {
		return r.Phase == workload.Queued && r.Reason != nil && r.Reason.Shortage != nil
	}); err != nil {
		return err
	}
	why, err := c.queries.Explain(ctx, query.ExplainRequest{ID: third.record.ID})
	if err != nil {
		return err
	}
	for _, reason := range why.Clusters {
		c.report.note("%s: %s", reason.Cluster, reason.Message)
	}
	c.report.check(len(why.Clusters) == 2, "the explanation has %d clusters", len(why.Clusters))
	return c.cancel(ctx, third)
}

func (c *sites) gangOf(ctx context.Context, name string) (*gang, error) {
	asked := size{scarce: gpu, each: 1, replicas: 2}
	return c.submitExample(ctx, examples.Glue, edit{name: name, namespace: c.namespace, size: &asked})
}

// submitGang submits a gang of two GPUs and waits until it runs in a cluster.
func (c *sites) submitGang(ctx context.Context, name, cluster string) (*gang, error) {
	g, err := c.gangOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return g, c.expectIn(ctx, g, cluster, 1)
}

// expectIn waits until a gang runs in an attempt, and looks where its pods are.
func (c *sites) expectIn(ctx context.Context, g *gang, cluster string, attempt int) error {
	err := c.expect(ctx, g, fmt.Sprintf("runs in attempt %d", attempt), func(r workload.Record) bool {
		return r.Phase == workload.Running && r.Attempt == attempt
	})
	if err != nil {
		return err
	}
	pods, err := c.observed[cluster].podsOf(ctx, g.record.Workload)
	if err != nil {
		return err
	}
	fault := misplaced(pods, g.record.Placements)
	if !c.report.check(g.record.Cluster == cluster && fault == "", "its %d pods run in cluster %s, on the reserved nodes", len(pods), cluster) {
		c.report.note("it is in cluster %q; %s", g.record.Cluster, fault)
	}
	return nil
}

// lose cuts the dearer cluster off, and has it leave by force.
func (c *sites) lose(ctx context.Context) error {
	first, second := c.gangs[0], c.gangs[1]
	c.report.step("Cluster %s is cut off. It gets no new gang; the one that runs there is kept: nothing proves that it does not run.", far)
	if err := c.far.CutOff(); err != nil {
		return err
	}
	if err := c.awaitStates(ctx, map[string]string{far: query.ClusterSilent}); err != nil {
		return err
	}
	if err := c.table(ctx); err != nil {
		return err
	}
	c.report.check(second.record.Phase == workload.Running && second.record.Attempt == 1, "%s is kept: %s in attempt %d", second.record.Name, second.record.Phase, second.record.Attempt)
	if err := c.cancel(ctx, first); err != nil {
		return err
	}
	c.report.step("An operator declares it lost: it leaves by force, and its gang starts again in %s.", near)
	if err := c.order(ctx, query.HoldRequest{Cluster: far, Leave: true, Force: true, Why: "the link is dead"}); err != nil {
		return err
	}
	return c.expectIn(ctx, second, near, 2)
}

// comeBack has the lost cluster come back and join again.
func (c *sites) comeBack(ctx context.Context) error {
	second := c.gangs[1]
	c.report.step("Cluster %s comes back. It removes what is not commanded any more, and joins again.", far)
	if err := c.far.Return(ctx); err != nil {
		return err
	}
	if err := c.awaitNothing(ctx, far, second); err != nil {
		return err
	}
	if err := c.join(ctx, far, "3", true); err != nil {
		return err
	}
	if err := c.awaitStates(ctx, map[string]string{far: query.ClusterReady}); err != nil {
		return err
	}
	return c.table(ctx) // its watcher reports the other node soon
}

// drain empties the cheaper cluster.
func (c *sites) drain(ctx context.Context) error {
	second := c.gangs[1]
	c.report.step("Cluster %s is drained: its gang goes to %s as the next attempt.", near, far)
	if err := c.order(ctx, query.HoldRequest{Cluster: near, Drain: true, Why: "new switches"}); err != nil {
		return err
	}
	if err := c.expectIn(ctx, second, far, 3); err != nil {
		return err
	}
	if err := c.awaitStates(ctx, map[string]string{near: query.ClusterDrained}); err != nil {
		return err
	}
	return c.table(ctx)
}

// awaitNothing waits until a cluster has no pod of a gang.
func (c *sites) awaitNothing(ctx context.Context, cluster string, g *gang) error {
	pods := 0
	err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		found, err := c.observed[cluster].podsOf(ctx, g.record.Workload)
		pods = len(found)
		return pods == 0, err
	})
	c.report.check(pods == 0, "cluster %s has no pod of %s: %d", cluster, g.record.Name, pods)
	return err
}

// awaitStates waits until clusters are in these states.
func (c *sites) awaitStates(ctx context.Context, want map[string]string) error {
	is := map[string]string{}
	err := c.poll(ctx, func(ctx context.Context) (bool, error) {
		answer, err := c.queries.Status(ctx)
		for _, found := range answer.Clusters {
			is[found.Name] = found.State
		}
		for name, state := range want {
			if is[name] != state {
				return false, err
			}
		}
		return true, err
	})
	for name, state := range want {
		c.report.check(is[name] == state, "cluster %s is %s", name, is[name])
	}
	return err
}

// poll asks until the answer is yes, for as long as the story is patient.
func (c *sites) poll(ctx context.Context, met func(ctx context.Context) (bool, error)) error {
	bounded, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	tick := time.NewTicker(statesPoll)
	defer tick.Stop()
	for {
		if is, err := met(ctx); is || err != nil {
			return err
		}
		select {
		case <-bounded.Done():
			return ctx.Err() // the check prints what differs
		case <-tick.C:
		}
	}
}

func (c *sites) table(ctx context.Context) error {
	answer, err := c.queries.Status(ctx)
	if err != nil {
		return err
	}
	return output.Clusters(answer.Clusters, answer.At).Write(c.report.w, "   ")
}
