package sim

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	queuemanager "muster.dev/muster/services/queue-manager/simhooks"
)

// Times of queue-manager.
const (
	beatEvery    = 500 * time.Millisecond
	standbyEvery = 400 * time.Millisecond
	tickEvery    = time.Second
	checkEvery   = time.Minute
	nodeGrace    = 10 * time.Second
	batchLimit   = 1000
	// A leader gives way after longestTerm; where leaders take turns after shortTerm.
	longestTerm = time.Hour
	shortTerm   = 12 * time.Second
	// busPatience is how long a leader bears to be without NATS.
	busPatience = 10 * time.Second
)

func (m *machine) isManager() bool { return strings.HasPrefix(m.name, "queue-manager") }

// bootManager does what queue-manager's engine does: it stands by, leads, and when
// its term ends starts again.
func bootManager(m *machine) {
	m.spawn("engine", func(p *proc) {
		single := 0
		for {
			began := m.w.now
			cause, blamed := lead(m, p, single)
			single = 0
			if cause != nil && !blamed {
				single = batchLimit
			}
			p.sleep(m.memory.BackOff(cause, blamed, m.w.now.Sub(began)))
		}
	})
}

// term is a time as leader.
type term struct {
	m       *machine
	w       *World
	epoch   int64
	session int
	over    bool
	step    *queuemanager.Step
	writer  *queuemanager.Writer
	relay   *queuemanager.Relay
	procs   []*proc
	// A term has a clock of its own, which begins as the machine's: see engine.clock.
	began, clock time.Time

	capacity, status, work []bus.Delivery
	readers                []*reader
	hand                   *hand
	behind                 int // readers that have not caught up
	decide                 bool
	announced              int // how often the term was announced
	commandsFound          []queuemanager.CommandsFound
	resent                 []func() // called once the commands that were distrusted are committed
	withheld               bool     // of some of them nothing was sent
	decisions              []*queuemanager.Decision
	failed                 *queuemanager.Decision // and not written, for the cause
	cause                  error
	single                 int       // the number of inputs that are still to be applied one by one
	looked                 time.Time // for what was released
	sound                  time.Time // when the streams were found to be sound
	decider, committer     *proc
	publishers             []*proc
	// era of the ledger that was read last, and followed the epoch of its last commit: a
	// version alone does not name a commit.
	era      int
	followed int64
}

// lead is one term. It returns the cause of a commit that failed, and whether
// something was found to blame for it.
func lead(m *machine, p *proc, single int) (cause error, blamed bool) {
	w := m.w
	t := &term{m: m, w: w, single: single}
	followed, ok := t.standBy(p)
	if !ok {
		return nil, false
	}
	defer t.end()
	if t.raiseEpoch() != nil {
		return nil, false
	}
	followed = t.takeOver(followed)
	if followed == nil {
		return nil, false
	}
	if followed.Version() == w.disk.version { // a paused process may have read an older one: its term is fenced
		w.check.checkPastUsage(followed)
		w.check.checkLearned(followed)
	}
	if !t.begin(followed) {
		return t.cause, t.diagnose()
	}
	w.disk.resumed()
	t.keep(p)
	t.stop()
	return t.cause, t.diagnose()
}

// keep holds the term until it is over.
func (t *term) keep(p *proc) {
	w, m := t.w, t.m
	unheard, longest := w.now, longestTerm
	if w.takesTurns() {
		longest = shortTerm
	}
	for !t.over {
		p.sleep(beatEvery)
		if w.now.Sub(t.began) > longest {
			return // and another one leads; the process goes on
		}
		if w.reaches(m, natsServer) {
			unheard = w.now
		}
		err := w.call(postgresServer, "beat", func() error { return w.disk.alive(t.session) })
		if err != nil || w.now.Sub(unheard) > busPatience {
			return
		}
	}
}

// begin starts the parts of a term, as the engine does.
func (t *term) begin(s *state.State) bool {
	w, m := t.w, t.m
	unreadable := prometheus.NewCounter(prometheus.CounterOpts{Name: "unreadable"})
	t.began, t.clock = w.now, m.now()
	ledger := &witness{ledger: w.disk, term: t}
	t.step = &queuemanager.Step{
		State: s, Archive: ledger, Logger: zap.NewNop(), Unreadable: unreadable,
		DeadLetter: func(_ context.Context, d bus.Delivery, reason string) { d.Reject(reason) }, Publish: t.publish,
	}
	t.writer = queuemanager.NewWriter(ledger, t.step)
	s.SetSilentAfter(clusterSilence)
	t.step.Begin(t.epoch, state.Limits{}, queuemanager.AskFor, t.now())
	if !t.beginQuarantine() {
		return false
	}
	c := &connection{w: w}
	if c.EnsureStreams(context.Background()) != nil {
		return false
	}
	compared, ok := t.recover(c)
	if !ok {
		return false
	}
	t.relay = t.newRelay(c, compared)
	steps, err := t.relay.Steps(context.Background())
	if err != nil {
		return false
	}
	t.decider = t.spawn("decider", t.decides)
	t.committer = t.spawn("committer", t.commits)
	for publisher := range steps.Publishers() {
		t.publishers = append(t.publishers, t.spawn("publisher", func(p *proc) { t.relays(p, steps, publisher) }))
	}
	t.subscribe()
	w.net.onReconnect(m, func() {
		if !t.over {
			t.relay.Check()
			t.wakePublishers()
			t.hand.gone = true
			t.hand = w.net.work(m, bus.WorkloadStream, false, t.takeWork)
		}
	})
	return true
}

// newRelay makes the relay of a term, which runs in the world's time.
func (t *term) newRelay(c *connection, compared map[string]queuemanager.Watermark) *queuemanager.Relay {
	w := t.w
	return queuemanager.NewRelay(queuemanager.RelayOptions{
		Epoch: t.epoch, Store: relayLedger{w.disk}, Bus: c, Logger: zap.NewNop(), CheckEvery: checkEvery, Compared: compared,
		CommandsFound: func(_ context.Context, found queuemanager.CommandsFound) {
			t.commandsFound = append(t.commandsFound, found)
			t.decider.wake()
		},
		Undeliverable: func(_ context.Context, u queuemanager.Undeliverable) {
			t.do(decisionlog.Input{Kind: decisionlog.Undeliverable, Workload: u.Workload, Reason: u.Reason})
		},
		Now:   func() time.Time { return w.now },
		Pause: func(_ context.Context, d time.Duration) error { w.cur.sleep(d); return nil },
		Later: func(d time.Duration, do func()) {
			w.after(d, func() {
				if !t.over {
					do()
					t.wakePublishers()
				}
			})
		},
	})
}
