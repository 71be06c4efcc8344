package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// Servers.
const (
	natsServer     = "NATS"
	postgresServer = "Postgres"
	apiServer      = "the API server"
)

var servers = []string{natsServer, postgresServer, apiServer}

// network is NATS with its streams, and which servers are away.
type network struct {
	w       *World
	isAway  map[string]time.Time // until when
	streams map[string]*stream
	readers []*reader
	works   map[string]*work
	lines   map[string]time.Time // when the last message of a connection arrives: they keep their order
	signals []*signal
	heard   []*listener
	losses  int            // how often it has lost messages
	dead    []bus.Delivery // the dead letters, as they were
	full    time.Time      // until when its disk is
	// stuck are the streams that could not store a message for want of room and store none until
	// NATS is restarted.
	stuck map[string]bool
	// clustered: whether it has a message is looked at before what that is to follow,
	// as servers do that have others; one alone does it the other way around.
	clustered bool
}

// listener hears what is asked while it is connected.
type listener struct {
	m    *machine
	life int
	take func(*event.ReportWanted)
}

// listen has a machine hear questions until it dies.
func (n *network) listen(m *machine, take func(*event.ReportWanted)) {
	n.heard = slices.DeleteFunc(n.heard, func(l *listener) bool { return l.life != l.m.life })
	n.heard = append(n.heard, &listener{m, m.life, take})
}

// ask sends a question to those who listen now.
func (n *network) ask(from *machine, q *event.ReportWanted) {
	if !n.w.reaches(from, natsServer) {
		return
	}
	for _, l := range n.heard {
		if n.w.nemesis.draw(l.m.name+" is asked", LostMessage) != "" {
			continue
		}
		n.w.after(n.arrives(l.m.name+"<ask"), func() {
			if l.life == l.m.life && !l.m.dead && !l.m.paused.After(n.w.now) && n.w.reaches(l.m, natsServer) {
				l.take(q)
			}
		})
	}
}

// purge takes the messages of a stream away, or makes the stream again, while all
// connections stand.
func (n *network) purge(name string, again bool) bool {
	s := n.streams[name]
	if s == nil || n.down(natsServer) {
		return false
	}
	n.losses++
	s.messages, s.purged = nil, s.last
	if again {
		n.remake(name)
	}
	n.w.check.forgetMessages()
	return true
}

// signal notifies a part of reconnections.
type signal struct {
	m      *machine
	life   int
	notify func()
}

func newNetwork(w *World) *network {
	n := &network{w: w, isAway: map[string]time.Time{}, streams: map[string]*stream{}, works: map[string]*work{}, stuck: map[string]bool{}, lines: map[string]time.Time{}, clustered: w.Seed%2 == 1}
	n.ensure()
	return n
}

// Beginnings of the subjects of submissions: for queue-manager, and kept for one whose
// database is restored to an older state.
const (
	workPrefix = "muster.workload."
	keptPrefix = "muster.kept."
)

type streamName struct {
	prefix, name string
	lastOnly     bool
}

// streamNames by the beginning of their subjects.
var streamNames = []streamName{
	{"muster.submit.", bus.SubmitStream, false},
	{workPrefix, bus.WorkloadStream, false},
	{keptPrefix, bus.KeptStream, false},
	{"muster.events.", bus.EventsStream, false},
	{"muster.capacity.", bus.CapacityStream, true},
	{"muster.dispatch.", bus.DispatchStream, true},
	{"muster.check.", bus.DispatchStream, true},
	{"muster.status.", bus.StatusStream, true},
}

func (n *network) ensure() {
	for _, s := range streamNames {
		if n.streams[s.name] == nil {
			n.streams[s.name] = n.newStream(s.name, s.lastOnly)
		}
	}
}

// newStream makes a stream as bus does: those that publishers follow begin at a sequence that
// no earlier stream of the name has reached.
func (n *network) newStream(name string, lastOnly bool) *stream {
	s := &stream{name: name, created: n.w.now, ids: map[string]remembered{}, lastOnly: lastOnly}
	if bus.IsFollowed(name) && n.w.Bug != BugRepeatedSequences {
		s.last = bus.FirstSequence(n.w.now) - 1
	}
	s.begin = s.last + 1
	return s
}

func (n *network) streamOf(subject string) *stream {
	for _, s := range streamNames {
		if strings.HasPrefix(subject, s.prefix) {
			return n.streams[s.name]
		}
	}
	return nil
}

func (n *network) down(server string) bool { return n.isAway[server].After(n.w.now) }

// away takes a server away for a while.
func (n *network) away(server string, d time.Duration) {
	until := n.w.now.Add(d)
	if until.After(n.isAway[server]) {
		n.isAway[server] = until
	}
	n.w.after(d, func() {
		if n.down(server) {
			return
		}
		for _, m := range n.w.machines {
			n.reconnected(m, server)
		}
	})
}

// reconnected has a machine start again with a server.
func (n *network) reconnected(m *machine, server string) {
	if m.dead || !n.w.reaches(m, server) {
		return
	}
	switch server {
	case apiServer:
		for _, i := range n.w.cluster.informers {
			if i.m == m {
				i.relist()
			}
		}
	case natsServer:
		for _, r := range slices.Clone(n.readers) {
			if r.m == m && r.life == m.life {
				r.restart()
			}
		}
		for _, s := range slices.Clone(n.signals) {
			if s.m == m && s.life == m.life {
				n.w.after(n.w.latency(), func() {
					if !m.dead && s.life == m.life {
						s.notify()
					}
				})
			}
		}
	}
}

// onReconnect has a machine told of reconnections until it dies.
func (n *network) onReconnect(m *machine, notify func()) {
	n.signals = slices.DeleteFunc(n.signals, func(s *signal) bool { return s.life != s.m.life })
	n.signals = append(n.signals, &signal{m, m.life, notify})
}

// wipe takes all data away.
func (n *network) wipe() {
	n.losses++
	n.streams = map[string]*stream{}
	clear(n.stuck) // it was restarted
	for _, w := range n.works {
		w.pending = map[uint64]*pending{}
	}
	n.w.check.forgetMessages()
}

// loseTail takes the last messages of each stream away.
func (n *network) loseTail(count int) {
	n.losses++
	clear(n.stuck) // it was restarted
	for _, s := range streamNames {
		stream := n.streams[s.name]
		if stream == nil {
			continue
		}
		lost := min(count, len(stream.messages))
		for _, m := range stream.messages[len(stream.messages)-lost:] {
			stream.last, stream.lastID = min(stream.last, m.Sequence-1), ""
			delete(stream.ids, m.Headers.Get(nats.MsgIdHdr))
		}
		stream.messages = stream.messages[:len(stream.messages)-lost]
		if work := n.works[s.name]; work != nil {
			maps.DeleteFunc(work.pending, func(sequence uint64, _ *pending) bool { return sequence > stream.last })
		}
	}
	n.w.check.forgetMessages()
}

// arrives is when what is sent now on a connection arrives.
func (n *network) arrives(line string) time.Duration {
	at := n.w.now.Add(n.w.latency())
	if last := n.lines[line]; last.After(at) {
		at = last
	}
	n.lines[line] = at
	return at.Sub(n.w.now)
}

// hold keeps a connection's messages back for a while.
func (n *network) hold(line string, d time.Duration) {
	n.lines[line] = later(n.lines[line], n.w.now.Add(d))
}
