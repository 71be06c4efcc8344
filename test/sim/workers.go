package sim

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
)

// work is a durable consumer: each message is settled.
type work struct {
	n       *network
	stream  string
	pending map[uint64]*pending
	hands   []*hand // who reads, at most one takes each message
	turn    int
}

type hand struct {
	m    *machine
	life int
	take func(bus.Delivery)
	gone bool
}

type pending struct {
	message  bus.Delivery
	attempts uint64
	round    int // of deliveries, so that an old timer does nothing
}

// resubscribes is how long it takes at most until a reader whose consumer is gone has
// another one.
const resubscribes = 2 * time.Second

// ackWait is the time until an unsettled message comes again.
const ackWait = 5 * time.Second

// work has a machine take messages of a stream. takeOver sends everything that is
// not settled to it alone.
func (n *network) work(m *machine, stream string, takeOver bool, take func(bus.Delivery)) *hand {
	c := n.works[stream]
	if c == nil {
		c = &work{n: n, stream: stream, pending: map[uint64]*pending{}}
		n.works[stream] = c
	}
	h := &hand{m: m, life: m.life, take: take}
	if takeOver {
		// Consumers are recreated. A process that still reads them finds that out.
		for _, other := range c.hands {
			n.w.after(n.w.between(resubscribes/4, resubscribes), func() { c.resubscribe(other) })
		}
		c.hands = nil
	}
	c.hands = append(c.hands, h)
	s := n.streams[stream]
	if s == nil {
		return h
	}
	for _, message := range s.messages {
		if p := c.pending[message.Sequence]; p == nil || takeOver {
			c.offer(message)
		}
	}
	return h
}

// resubscribe has one read again whose consumer was taken away, when it does not
// stand still.
func (c *work) resubscribe(h *hand) {
	w := c.n.w
	switch {
	case h.gone || h.life != h.m.life || h.m.dead || slices.Contains(c.hands, h):
	case h.m.paused.After(w.now) || !w.reaches(h.m, natsServer):
		w.after(resubscribes, func() { c.resubscribe(h) })
	default:
		c.hands = append(c.hands, h)
	}
}

func (c *work) offer(m bus.Delivery) {
	p := c.pending[m.Sequence]
	if p == nil {
		p = &pending{message: m}
		c.pending[m.Sequence] = p
	}
	c.deliver(p)
}

// deliver sends a message to one who reads; if it is not settled in time, again.
func (c *work) deliver(p *pending) {
	p.round++
	round := p.round
	w := c.n.w
	w.after(ackWait, func() {
		if c.pending[p.message.Sequence] == p && p.round == round {
			c.deliver(p)
		}
	})
	c.hands = slices.DeleteFunc(c.hands, func(h *hand) bool { return h.gone || h.life != h.m.life })
	if len(c.hands) == 0 {
		return
	}
	c.turn++
	h := c.hands[c.turn%len(c.hands)]
	if !w.reaches(h.m, natsServer) {
		return
	}
	p.attempts++
	d := p.message
	d.Attempts = p.attempts
	d = d.SettledBy(&settler{c, p, h.m})
	times := 1
	switch w.nemesis.draw(h.m.name+" takes "+c.stream, LostMessage, Duplicate) {
	case LostMessage:
		return
	case Duplicate:
		times = 2
	}
	for range times {
		w.after(c.n.arrives(h.m.name+"<"+c.stream), func() {
			if h.life == h.m.life && !h.m.dead && !h.gone {
				h.take(d)
			}
		})
	}
}

// settler answers the consumer, unless that is lost on the way.
type settler struct {
	c *work
	p *pending
	m *machine
}

func (s *settler) send(do func()) error {
	w := s.c.n.w
	if !w.reaches(s.m, natsServer) || w.nemesis.draw(s.m.name+" settles "+s.c.stream, LostMessage) != "" {
		return nil
	}
	w.after(w.latency(), func() {
		if s.c.pending[s.p.message.Sequence] == s.p && !s.c.n.down(natsServer) {
			do()
		}
	})
	return nil
}

func (s *settler) done() {
	delete(s.c.pending, s.p.message.Sequence)
	if stream := s.c.n.streams[s.c.stream]; stream != nil {
		stream.remove(s.p.message.Sequence)
	}
}

// Ack implements bus.Settler.
func (s *settler) Ack() error { return s.send(s.done) }

// NakWithDelay implements bus.Settler.
func (s *settler) NakWithDelay(delay time.Duration) error {
	return s.send(func() {
		if s.c.n.w.Bug == BugImpatient && s.c.stream == bus.WorkloadStream && s.p.attempts > 10 {
			s.done()
			return
		}
		s.p.round++
		round := s.p.round
		s.c.n.w.after(delay, func() {
			if s.c.pending[s.p.message.Sequence] == s.p && s.p.round == round {
				s.c.deliver(s.p)
			}
		})
	})
}

// TermWithReason implements bus.Settler.
func (s *settler) TermWithReason(string) error { return s.send(s.done) }

// InProgress implements bus.Settler.
func (s *settler) InProgress() error { return nil }
