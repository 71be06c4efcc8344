package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/journal"
	queuemanager "muster.dev/muster/services/queue-manager/step"
)

// Times of queue-manager.
const (
	beatEvery    = 500 * time.Millisecond
	standbyEvery = 400 * time.Millisecond
	tickEvery    = time.Second
	checkEvery   = time.Minute
	nodeGrace    = 10 * time.Second
	termPause    = 250 * time.Millisecond
	batchLimit   = 1000
	// A leader gives way after longestTerm; where leaders take turns after shortTerm.
	longestTerm = time.Hour
	shortTerm   = 12 * time.Second
	// busPatience is how long a leader bears to be without NATS.
	busPatience = 10 * time.Second
)

func (m *machine) isManager() bool { return strings.HasPrefix(m.name, "queue-manager") }

// bootManager does what queue-manager's engine does: it stands by, leads, and when
// its term ends begins anew.
func bootManager(m *machine) {
	m.spawn("engine", func(p *proc) {
		for {
			lead(m, p)
			p.sleep(termPause)
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
	desk    *queuemanager.Desk
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
	missing                []queuemanager.Missing
	decisions              []*queuemanager.Decision
	decider, committer     *proc
	lanes                  []*proc
}

// lead is one term.
func lead(m *machine, p *proc) {
	w := m.w
	t := &term{m: m, w: w}
	followed, ok := t.standBy(p)
	if !ok {
		return
	}
	defer t.end()
	followed = t.takeOver(followed)
	if followed == nil {
		return
	}
	if !t.begin(followed) {
		return
	}
	unheard, longest := w.now, longestTerm
	if w.tight() {
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

// standBy follows the leader until there is none, and takes an epoch.
func (t *term) standBy(p *proc) (followed *book.Book, ok bool) {
	w := t.w
	for {
		if !w.reaches(t.m, natsServer) {
			p.sleep(standbyEvery)
			continue
		}
		err := w.call(postgresServer, "lead", func() error {
			t.epoch, t.session = w.disk.lock(t.m.name)
			return nil
		})
		if t.epoch > 0 && err == nil {
			return followed, true
		}
		if err != nil {
			w.disk.unlock(t.session) // the connection is lost, and the lock with it
			return nil, false
		}
		if followed == nil {
			followed = t.load(0)
		} else if t.follow(followed) != nil {
			followed = nil
		}
		p.sleep(standbyEvery)
	}
}

// load reads everything into a book; nil when that fails.
func (t *term) load(epoch int64) (loaded *book.Book) {
	err := t.w.call(postgresServer, "load", func() error {
		loaded = book.New(epoch, t.w.disk.load())
		return nil
	})
	if err != nil {
		return nil
	}
	return loaded
}

func (t *term) follow(b *book.Book) error {
	var delta book.Delta
	err := t.w.call(postgresServer, "follow", func() error {
		delta = t.w.disk.since(b.Version())
		return nil
	})
	if err == nil && delta.Version != b.Version() {
		b.Follow(delta)
	}
	return err
}

// takeOver makes the followed book the term's, or reads one anew.
func (t *term) takeOver(followed *book.Book) *book.Book {
	if followed == nil || t.follow(followed) != nil {
		return t.load(t.epoch)
	}
	followed.Follow(book.Delta{Version: followed.Version(), LastOrder: t.w.disk.lastOrder})
	followed.Lead(t.epoch, 1<<20)
	return followed
}

// begin starts the parts of a term, as govern does.
func (t *term) begin(b *book.Book) bool {
	w, m := t.w, t.m
	unreadable := prometheus.NewCounter(prometheus.CounterOpts{Name: "unreadable"})
	t.began, t.clock = w.now, m.now()
	t.desk = &queuemanager.Desk{
		Book: b, Ledger: &witness{ledger: w.disk, term: t}, Logger: zap.NewNop(), Unreadable: unreadable,
		Bury: func(_ context.Context, d bus.Delivery, reason string) { d.Reject(reason) },
	}
	t.desk.Begin(t.epoch, book.Limits{}, queuemanager.AskFor, t.now())
	c := &connection{w: w}
	if c.EnsureStreams(context.Background()) != nil {
		return false
	}
	t.relay = queuemanager.NewRelay(queuemanager.RelayOptions{
		Epoch: t.epoch, Ledger: w.disk, Bus: c, Logger: zap.NewNop(), CheckEvery: checkEvery,
		Missing: func(_ context.Context, missing queuemanager.Missing) {
			t.missing = append(t.missing, missing)
			t.decider.wake()
		},
		Undeliverable: func(_ context.Context, u queuemanager.Undeliverable) {
			t.do(journal.Input{Kind: journal.Undeliverable, Workload: u.Workload, Reason: u.Reason})
		},
		Pause: func(_ context.Context, d time.Duration) { w.cur.sleep(d) },
		Later: func(d time.Duration, do func()) {
			w.after(d, func() {
				if !t.over {
					do()
					t.wakeLanes()
				}
			})
		},
	})
	steps, err := t.relay.Steps(context.Background())
	if err != nil {
		return false
	}
	t.decider = t.spawn("decider", t.decides)
	t.committer = t.spawn("committer", t.commits)
	for lane := range steps.Lanes() {
		t.lanes = append(t.lanes, t.spawn("lane", func(p *proc) { t.relays(p, steps, lane) }))
	}
	t.subscribe()
	w.net.onReconnect(m, func() {
		if !t.over {
			t.relay.Check()
			t.wakeLanes()
			t.hand.gone = true
			t.hand = w.net.work(m, bus.WorkloadStream, false, t.takeWork)
		}
	})
	return true
}

// now is the time of the term.
func (t *term) now() time.Time { return t.clock.Add(t.w.now.Sub(t.began)) }

func (t *term) wakeLanes() {
	for _, p := range t.lanes {
		p.wake()
	}
}

func (t *term) takeWork(d bus.Delivery) { t.work = append(t.work, d); t.decider.wake() }

func (t *term) subscribe() {
	caughtUp := func() { t.behind--; t.decider.wake() }
	t.behind = 2
	t.readers = []*reader{
		t.w.net.follow(t.m, bus.CapacityStream, "muster.capacity.", func(d bus.Delivery) { t.capacity = append(t.capacity, d); t.decider.wake() }, caughtUp),
		t.w.net.follow(t.m, bus.StatusStream, "muster.status.", func(d bus.Delivery) { t.status = append(t.status, d); t.decider.wake() }, caughtUp),
	}
	t.hand = t.w.net.work(t.m, bus.WorkloadStream, true, t.takeWork)
}

// spawn begins a part of the term; when it returns, the term is over.
func (t *term) spawn(name string, body func(*proc)) *proc {
	p := t.m.spawn(name, func(p *proc) {
		body(p)
		t.over = true
	})
	t.procs = append(t.procs, p)
	return p
}

// end ends the parts of the term; what was not settled comes again.
func (t *term) end() {
	t.over = true
	for _, p := range t.procs {
		p.kill()
	}
	for _, r := range t.readers {
		r.stop()
	}
	if t.hand != nil {
		t.hand.gone = true
	}
	if t.m.dead {
		return
	}
	t.w.disk.unlock(t.session)
	giveBack := slices.Clone(t.work)
	for _, d := range t.decisions {
		giveBack = append(giveBack, d.Batch...)
	}
	for _, d := range giveBack {
		d.Retry(0)
	}
}
