package sim

import (
	"errors"
	"iter"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	queuemanager "muster.dev/muster/services/queue-manager/simhooks"
)

// machine is a process of a service: several coroutines that die together.
type machine struct {
	w      *World
	name   string
	boot   func(*machine)
	dead   bool
	life   int // counts the boots
	shapes shapeMemory
	// reached is the last commit that the ledger is known to have had in the term.
	reached int64
	paused  time.Time
	away    time.Time // does not start before
	memory  *queuemanager.Memory
	storage bus.Storage // what NATS did not store of the messages of this life
	skew    time.Duration
	ended   string          // the identity of its last term under a lease, whose work has ended
	cut     map[string]bool // servers that it does not reach
	procs   []*proc
}

// proc is a coroutine of a machine.
type proc struct {
	m      *machine
	name   string
	next   func() (struct{}, bool)
	end    func()
	yield  func(struct{}) bool
	ended  bool
	parked bool
	woken  bool
	parks  int // counts them, so that the timer of one does not end the next
}

// crashed unwinds a coroutine.
type crashed struct{}

func (w *World) machine(name string, boot func(*machine)) *machine {
	m := &machine{w: w, name: name, boot: boot, cut: map[string]bool{}}
	w.machines = append(w.machines, m)
	w.after(w.latency(), m.start)
	return m
}

func (m *machine) start() {
	if rest := m.away.Sub(m.w.now); rest > 0 {
		m.dead, m.ended = true, ""
		m.w.after(rest, m.start)
		return
	}
	m.memory, m.storage = queuemanager.NewMemory(), bus.Storage{}
	m.dead, m.life = false, m.life+1
	m.w.narrate("%s starts", m.name)
	m.boot(m)
}

// now is the machine's clock.
func (m *machine) now() time.Time { return m.w.now.Add(m.skew) }

// crash ends all coroutines of the machine where they wait; it starts again later.
func (m *machine) crash() {
	if m.dead {
		return
	}
	m.dead, m.paused, m.ended = true, time.Time{}, ""
	m.w.narrate("%s dies", m.name)
	if m.w.disk.holder == m.name {
		m.w.after(m.w.latency(), m.w.disk.dropSession) // its connections are closed
	}
	m.w.after(0, m.stop)
	m.w.after(m.w.between(500*time.Millisecond, 4*time.Second), m.start)
}

func (m *machine) stop() {
	for _, p := range m.procs {
		p.kill()
	}
	m.procs = nil
}

// spawn begins a coroutine.
func (m *machine) spawn(name string, body func(*proc)) *proc {
	p := &proc{m: m, name: name}
	p.next, p.end = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer func() {
			if cause := recover(); cause != nil {
				if _, expected := cause.(crashed); !expected {
					panic(cause)
				}
			}
		}()
		body(p)
	})
	if len(m.procs) > 100 {
		m.procs = slices.DeleteFunc(m.procs, func(p *proc) bool { return p.ended })
	}
	m.procs = append(m.procs, p)
	m.w.after(0, p.resume)
	return p
}

func (p *proc) kill() {
	if !p.ended && p.m.w.cur != p {
		p.ended = true
		p.end()
	}
}

// resume lets the coroutine go on, later if its machine stands still.
func (p *proc) resume() {
	w := p.m.w
	if p.ended || p.m.dead {
		return
	}
	if p.m.paused.After(w.now) {
		w.after(p.m.paused.Sub(w.now), p.resume)
		return
	}
	before := w.cur
	w.cur = p
	if _, more := p.next(); !more {
		p.ended = true
	}
	w.cur = before
}

// wait hands over until another coroutine resumes this one.
func (p *proc) wait() {
	if p.ended || !p.yield(struct{}{}) {
		panic(crashed{})
	}
}

// sleep hands over for a while.
func (p *proc) sleep(d time.Duration) {
	p.m.w.after(d, p.resume)
	p.wait()
}

// park hands over until wake, at most so long.
func (p *proc) park(atMost time.Duration) {
	if p.woken {
		p.woken = false
		return
	}
	p.parks++
	p.parked = true
	this := p.parks
	p.m.w.after(atMost, func() {
		if p.parked && p.parks == this {
			p.parked = false
			p.resume()
		}
	})
	p.wait()
	p.woken = false
}

// wake ends a park, the next one if there is none.
func (p *proc) wake() {
	p.woken = true
	if p.parked {
		p.parked = false
		p.m.w.after(0, p.resume)
	}
}

// Errors of calls.
var (
	errLost = errors.New("connection lost before an answer came")
	errAway = errors.New("server does not answer")
)

// callPatience is how long a caller waits for a server that does not answer.
const callPatience = 2 * time.Second

// call has a server do something and waits for the answer. The caller may die
// before, while and after the server does it, and never know; so may the request
// or the answer be lost.
func (w *World) call(server, op string, effect func() error) error {
	p := w.cur
	if p == nil { // a question of the harness itself
		return effect()
	}
	fault := w.nemesis.at(p.m.name + " " + op)
	if fault == CrashBefore {
		p.m.crash()
		p.wait()
	}
	if !w.reaches(p.m, server) {
		p.sleep(w.between(callPatience/4, callPatience))
		return errAway
	}
	if fault == Delay {
		p.sleep(w.between(500*time.Millisecond, 5*time.Second))
	}
	err, era := errLost, w.disk.era
	w.after(w.latency(), func() {
		cut := server == postgresServer && era != w.disk.era // a server that comes back has other connections
		if fault != LostRequest && !w.net.down(server) && !cut {
			w.unheard = fault == DoneButFailed
			err = effect()
			w.unheard = false
			if fault == DoneButFailed || !w.reaches(p.m, server) {
				err = errLost
			}
		}
		if fault == CrashDuring {
			p.m.crash()
		}
		w.after(w.latency(), p.resume)
	})
	p.wait()
	if fault == CrashAfter {
		p.m.crash()
		p.wait()
	}
	return err
}

// reaches reports whether a machine has a connection to a server.
func (w *World) reaches(m *machine, server string) bool { return !m.cut[server] && !w.net.down(server) }
