package sim

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
)

// reader follows what is true: the last values, then every change, and all of it
// again after a reconnection.
type reader struct {
	n        *network
	m        *machine
	life     int
	round    int // counts the beginnings
	stream   string
	prefix   string
	take     func(bus.Delivery)
	caughtUp func()
	reported bool // that it has caught up once
}

// follow begins to read for a machine.
func (n *network) follow(m *machine, stream, prefix string, take func(bus.Delivery), caughtUp func()) *reader {
	r := &reader{n: n, m: m, life: m.life, stream: stream, prefix: prefix, take: take, caughtUp: caughtUp}
	n.readers = slices.DeleteFunc(n.readers, func(r *reader) bool { return r.life != r.m.life })
	n.readers = append(n.readers, r)
	r.restart()
	return r
}

func (r *reader) stop() {
	r.round++
	r.n.readers = slices.DeleteFunc(r.n.readers, func(other *reader) bool { return other == r })
}

// restart reads everything again.
func (r *reader) restart() {
	r.round++
	round := r.round
	n := r.n
	n.w.after(n.w.latency(), func() {
		if r.life != r.m.life || r.m.dead || r.round != round || !slices.Contains(n.readers, r) {
			return
		}
		if !n.w.reaches(r.m, natsServer) || n.streams[r.stream] == nil {
			if n.w.reaches(r.m, natsServer) {
				n.ensure() // as every reader does that finds a stream missing
			}
			n.w.after(250*time.Millisecond, func() {
				if r.round == round {
					r.restart()
				}
			})
			return
		}
		s := n.streams[r.stream]
		for _, m := range s.messages {
			r.send(m)
		}
		n.w.after(n.arrives(r.line()), func() {
			if r.current(round) && !r.reported && r.caughtUp != nil {
				r.reported = true
				r.caughtUp()
			}
		})
	})
}

func (r *reader) line() string { return r.m.name + "<" + r.stream }

func (r *reader) current(round int) bool {
	return r.life == r.m.life && !r.m.dead && r.round == round
}

// offer hands a new message on.
func (r *reader) offer(m bus.Delivery) {
	if s := r.n.streams[r.stream]; s == nil || r.n.streamOf(m.Subject) != s || r.life != r.m.life {
		return
	}
	switch r.n.w.nemesis.draw(r.m.name+" reads "+r.stream, Restarted, Duplicate) {
	case Restarted:
		r.restart()
		return
	case Duplicate:
		r.send(m)
	}
	r.send(m)
}

func (r *reader) send(m bus.Delivery) {
	if !strings.HasPrefix(m.Subject, r.prefix) || !r.n.w.reaches(r.m, natsServer) {
		return // it starts over when it is connected again
	}
	round := r.round
	r.n.w.after(r.n.arrives(r.line()), func() {
		if r.current(round) {
			r.deliver(m, round)
		}
	})
}

// deliver waits while the machine stands still.
func (r *reader) deliver(m bus.Delivery, round int) {
	if rest := r.m.paused.Sub(r.n.w.now); rest > 0 {
		r.n.w.after(rest, func() {
			if r.current(round) {
				r.deliver(m, round)
			}
		})
		return
	}
	if s := r.n.streams[r.stream]; s != nil && m.Sequence <= s.purged {
		return // it was purged before it was delivered
	}
	r.take(m)
}
