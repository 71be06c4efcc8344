package engine

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/settings"
)

const (
	// batchLimit bounds the inputs of one transaction.
	batchLimit = 1000
	// batchBytes bounds them, too, but for the last one: large submissions are few.
	batchBytes = 8 << 20
	tickEvery  = time.Second
	// maintainEvery is how often partitions and old rows are looked after.
	maintainEvery = 10 * time.Minute
)

// leader is one term as leader. Its loop alone uses the state.
type leader struct {
	Options
	epoch   int64
	memory  *Memory
	clock   clock
	state   *state.State
	step    *Step
	writer  *Writer
	commits *commitQueue
	relay   *relay.Relay
	inputs  *inputs
	// single is the number of inputs that are still to be applied one by one.
	single int
	// decide is false until everything observed has been read once; then begun is
	// closed.
	decide bool
	begun  chan struct{}
	// commandsFound and undeliverable are what the relay finds.
	commandsFound chan relay.CommandsFound
	undeliverable chan relay.Undeliverable
	resends       resends
	// refusedLetters are dead letters that NATS has refused.
	refusedLetters []letter
	questions      chan question
	snapshot       *snapshotInProgress // nil unless a snapshot is being taken
	// applied are the objects that were applied in addition to the file, changes those that
	// a client asks for.
	applied settings.Set
	changes chan change
	// clusterNews are the changes of clusters that are to be published.
	clusterNews chan *event.ClusterChanged

	demand         demand
	checks         checkRound
	answers        answersSeen
	answersLost    chan struct{} // answers of AdmissionChecks are lost
	announced      int           // how often the term was announced to the clusters
	keptOutAt      time.Time     // when the state was told what is in quarantine
	checkedRelease time.Time     // when the quarantine was last read
	counted        counted
}

// pass hands a value over unless ctx ends first.
func pass[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

// run is the loop of the term: it waits for one thing to do, and does it with all
// messages that have arrived.
func (l *leader) run(ctx context.Context) error {
	maintain := time.NewTicker(maintainEvery)
	defer maintain.Stop()
	l.keepPartitions(ctx)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	over := time.NewTimer(l.LongestTerm)
	defer over.Stop()
	for {
		var first *bus.Delivery
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			l.Logger.Info("term reached its maximum length; beginning another", zap.Int64("epoch", l.epoch), zap.Duration("after", l.LongestTerm))
			return errTermOver
		case <-tick.C:
			err = l.tick(ctx)
		case <-maintain.C:
			err = l.maintain(ctx)
		case found := <-l.commandsFound:
			l.resends.replace(l.state.CommandSubjects(found.Lacks), found.Committed)
		case <-l.resendsDue():
			l.sendAgainIfDue()
		case u := <-l.undeliverable:
			l.do(decisionlog.Input{Kind: decisionlog.Undeliverable, Workload: u.Workload, Reason: u.Reason})
		case q := <-l.questions:
			l.handOver(q)
		case <-l.snapshotPieceDue():
			l.copySnapshotPiece()
		case <-l.reportsLeft(): // the step below makes some of them
		case c := <-l.changes:
			err = l.configure(ctx, c)
		case <-l.answersLost:
			l.repeatAllChecks()
		case <-l.inputs.caughtUp():
			l.inputs.nextCaughtUp()
		case d, open := <-l.inputs.capacity.C:
			first = opened(d, open)
		case d, open := <-l.inputs.status.C:
			first = opened(d, open)
		case d, open := <-l.inputs.checked:
			first = opened(d, open)
		case d, open := <-l.inputs.work:
			first = opened(d, open)
		}
		if err != nil {
			return err
		}
		if err := l.runStep(ctx, first); err != nil {
			return err
		}
		if l.beginDecisions() {
			if err := l.runStep(ctx, nil); err != nil {
				return err
			}
		}
	}
}

// always is ready at any time.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// reportsLeft is ready while reasons of workloads are left for the next decision.
func (l *leader) reportsLeft() <-chan struct{} {
	if !l.decide || !l.state.ReportsLeft() {
		return nil
	}
	return always
}

func opened(d bus.Delivery, open bool) *bus.Delivery {
	if !open {
		return nil
	}
	return &d
}

// tick does what is due every second.
func (l *leader) tick(ctx context.Context) error {
	l.do(decisionlog.Input{Kind: decisionlog.Tick, Grace: l.NodeGrace})
	l.count()
	l.Metrics.quarantined.Set(float64(l.memory.KeptOut(l.clock.now())))
	l.ask()
	l.publishDemand()
	l.repeatChecks()
	return l.checkReleased(ctx)
}

// beginDecisions lets the state decide once everything observed before the term has been
// applied, and reports whether it has just begun to.
func (l *leader) beginDecisions() (begun bool) {
	if l.decide || !l.inputs.allCaughtUp() {
		return false
	}
	l.decide = true
	l.do(decisionlog.Input{Kind: decisionlog.CheckRights})
	l.do(decisionlog.Input{Kind: decisionlog.BeginDecisions})
	l.ready(false)
	close(l.begun)
	return true
}

// runStep applies one batch, decides, and hands the decision over to be written and
// settled.
func (l *leader) runStep(ctx context.Context, first *bus.Delivery) error {
	began := time.Now()
	batch := l.collectBatch(first)
	decision, err := l.decideOn(ctx, batch)
	l.Metrics.decisions.Observe(time.Since(began).Seconds())
	l.reportIllegalTransitions()
	single := l.single > 0
	l.single = max(0, l.single-len(batch))
	if err == nil && decision != nil {
		err = l.commits.add(ctx, commit{decision: decision, began: began})
		if err == nil && single { // a batch that cannot be stored must not take the next one with it
			err = l.commits.flush(ctx, l.epoch)
		}
	}
	if err != nil {
		return err
	}
	return l.endResends(ctx)
}

// decideOn decides on a batch and prepares the transaction; nil when there is nothing to
// write.
func (l *leader) decideOn(ctx context.Context, batch []bus.Delivery) (*Decision, error) {
	decision, err := l.step.Apply(ctx, batch, l.decide, l.clock.now())
	if err != nil || decision == nil {
		return nil, err
	}
	return decision, l.writer.Prepare(decision)
}
