package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/muster-dev/internal/localstack"
	"muster.dev/muster/services/muster/examples"
)

// Patience with each thing that should happen: played nodes are quick, real ones
// pull images.
const (
	playedPatience = 30 * time.Second
	realPatience   = 10 * time.Minute
)

// Options are where the story takes place.
type Options struct {
	Stack     *localstack.Stack
	Queue     string
	Namespace string
	// Fitted: the cluster is the user's, so gangs are sized by the nodes that are
	// there, with this image, and taken away in the end.
	Fitted bool
	Image  string
	Logger *zap.Logger
	Out    io.Writer
}

// Run plays the story of gang admission. The error is nil when all went as it should.
func Run(ctx context.Context, o Options) error { return runStory(ctx, o, (*story).play) }

// RunProvisioning plays the story of nodes that come when a gang needs them, in a dev
// cluster of nodes without GPUs. The error is nil when all went as it should.
func RunProvisioning(ctx context.Context, o Options) error {
	return runStory(ctx, o, (*story).playProvisioning)
}

// runStory runs a story, and prints its table and the numbers of its checks.
func runStory(ctx context.Context, o Options, play func(*story, context.Context, Options) error) error {
	b, err := bus.Connect(ctx, bus.Options{URL: o.Stack.NATSURL, Name: "muster-demo", Logger: o.Logger})
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, stop := context.WithCancel(ctx) // ends the subscriptions before the connection
	defer stop()
	watch, err := newObserver(o.Stack.Admin)
	if err != nil {
		return err
	}
	s := &story{
		bus: b, queries: query.NewClient(b.Conn()), observer: watch, report: &report{w: o.Out},
		queue: o.Queue, namespace: o.Namespace, patience: playedPatience,
	}
	if o.Fitted {
		s.patience = realPatience
	}
	err = play(s, ctx, o)
	s.table(o.Out)
	if o.Fitted {
		err = errors.Join(err, s.cleanUp(context.WithoutCancel(ctx)))
	}
	fmt.Fprintf(o.Out, "\n%s\n", s.report.summary())
	if err == nil && s.report.failed > 0 {
		err = errDiffers
	}
	return err
}

// play runs the story.
func (s *story) play(ctx context.Context, o Options) error {
	cast, err := s.introduce(ctx, o)
	if err != nil {
		return err
	}
	s.report.step("A gang that fits starts whole.")
	first, err := s.submitExample(ctx, examples.Glue, cast.first)
	if err != nil {
		return err
	}
	if err := s.expectRunning(ctx, first); err != nil {
		return err
	}

	s.report.step("The same gang under a second name does not fit: it waits, and nothing of it exists.")
	second, err := s.submitExample(ctx, examples.Glue, cast.second)
	if err != nil {
		return err
	}
	if err := s.expectShortage(ctx, second, cast.size); err != nil {
		return err
	}
	if err := s.expectNothing(ctx, second); err != nil {
		return err
	}

	s.report.step("A gang whose %s are free in sum, but not on any one node, waits too.", plural(cast.size.scarce))
	third, err := s.fragmentedGang(ctx, cast, o)
	if err != nil {
		return err
	}
	if err := s.expectNothing(ctx, second); err != nil {
		return err
	}

	s.report.step("The first gang is cancelled, and the second one starts.")
	if err := s.cancel(ctx, first); err != nil {
		return err
	}
	second.freed = first.record.Times.Finished
	if err := s.expectRunning(ctx, second); err != nil {
		return err
	}
	if third != nil {
		return s.expectNothing(ctx, third)
	}
	return nil
}

// cast is who plays: what to change of the examples, and what the workers of
// the first two gangs ask.
type cast struct {
	first, second, third edit
	size                 size
}

// introduce shows the nodes and chooses the sizes.
func (s *story) introduce(ctx context.Context, o Options) (cast, error) {
	c := cast{
		first:  edit{namespace: o.Namespace},
		second: edit{namespace: o.Namespace, name: "raycluster-glue-1"},
		third:  edit{namespace: o.Namespace},
		size:   size{scarce: gpu, each: 2, replicas: 1}, // as in the example
	}
	answer, err := s.awaitNodes(ctx)
	if err != nil {
		return c, err
	}
	s.report.step("Muster sees %d nodes.", len(answer.Nodes))
	if err := output.Nodes(answer.Nodes, output.Text, time.Now()).Write(o.Out, "   "); err != nil {
		return c, err
	}
	if !o.Fitted {
		return c, nil
	}
	if c.size, err = fill(answer.Nodes); err != nil {
		return c, err
	}
	s.report.note("sized for these nodes, the gang's workers are %s", c.size)
	c.first.size, c.second.size = &c.size, &c.size
	c.third.name = "free-in-sum"
	c.first.image, c.second.image, c.third.image = o.Image, o.Image, o.Image
	return c, nil
}

// nodesPoll is how often nodes are asked for until the first ones are known.
const nodesPoll = 20 * time.Millisecond

// awaitNodes asks until queue-manager has nodes.
func (s *story) awaitNodes(ctx context.Context) (query.NodesAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, playedPatience)
	defer cancel()
	tick := time.NewTicker(nodesPoll)
	defer tick.Stop()
	for {
		answer, err := s.queries.Nodes(ctx)
		if err != nil || len(answer.Nodes) > 0 {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, fmt.Errorf("wait for the first node: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (s *story) submitExample(ctx context.Context, example string, e edit) (*gang, error) {
	document, err := render(example, e)
	if err != nil {
		return nil, err
	}
	return s.submit(ctx, document)
}

// fragmentedGang submits the third gang; nil when the nodes do not allow it.
func (s *story) fragmentedGang(ctx context.Context, c cast, o Options) (*gang, error) {
	answer, err := s.queries.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	asked, possible := fragmented(answer.Nodes, c.size.scarce)
	if !possible {
		largest, sum := free(answer.Nodes, c.size.scarce)
		s.report.skip(4, "%s free in sum, %s on the best node: no gang is fragmented here",
			amount(c.size.scarce, sum), amount(c.size.scarce, largest))
		return nil, nil
	}
	s.report.note("free: %s", freeOf(answer.Nodes, c.size.scarce))
	if o.Fitted {
		c.third.size = &asked
	}
	third, err := s.submitExample(ctx, examples.TwoGPUsOnOneNode, c.third)
	if err != nil {
		return nil, err
	}
	if err := s.expectShortage(ctx, third, asked); err != nil {
		return nil, err
	}
	return third, s.expectNothing(ctx, third)
}

// freeOf prints where a resource is free.
func freeOf(nodes []query.Node, name resource.Name) string {
	text := ""
	for _, n := range nodes {
		if takesPods(n) && n.Free[name] > 0 {
			text += fmt.Sprintf("%s on %s, ", amount(name, n.Free[name]), n.Name)
		}
	}
	return text[:max(0, len(text)-2)]
}

func plural(name resource.Name) string {
	if name == gpu {
		return "GPUs"
	}
	return "CPUs"
}
