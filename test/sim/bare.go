package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// A stream may lose its files while NATS runs, as by a removal under load: it answers
// questions, has no message and takes none, until it is deleted and made again.

// drawBare draws streams that lose their files.
func drawBare(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classBare)+100))
	for range 1 + random.IntN(2) {
		timed = append(timed, TimedFault{
			At:    5*time.Second + time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
			Fault: Bare, Pick: random.Uint64() >> 12,
		})
	}
	return timed
}

// errBare refuses a message of a stream without files.
var errBare = errors.New("the stream has no files")

// lay takes the files of a stream away.
func (n *network) lay(pick uint64) string {
	name := streamNames[pick%uint64(len(streamNames))].name
	s := n.streams[name]
	if s == nil || s.bare || n.down(natsServer) {
		return ""
	}
	n.losses++
	s.bare, s.messages, s.purged = true, nil, s.last
	if w := n.works[name]; w != nil {
		w.pending = map[uint64]*pending{}
	}
	n.w.check.forgetMessages()
	return name
}

// streamsEvery is how often the leader looks whether the streams are sound, as the engine does.
const streamsEvery = 30 * time.Second

// keepStreams makes streams again that have lost their files.
func (t *term) keepStreams() {
	n := t.w.net
	if t.w.now.Sub(t.sound) < streamsEvery || t.w.Bug == BugBare || !slices.ContainsFunc(streamNames, func(s streamName) bool { return n.isBare(s.name) }) {
		return
	}
	t.sound = t.w.now
	if t.w.call(natsServer, "ConfigureStreams", func() error {
		for _, s := range streamNames {
			if n.isBare(s.name) {
				n.remake(s.name)
			}
		}
		return nil
	}) == nil {
		t.relay.Check()
	}
}

func (n *network) isBare(name string) bool { return n.streams[name] != nil && n.streams[name].bare }

// remake makes a stream again; its consumers went with it.
func (n *network) remake(name string) {
	n.streams[name] = n.newStream(name, n.streams[name].lastOnly)
	delete(n.stuck, name)
	for _, r := range slices.Clone(n.readers) {
		if r.stream == name {
			r.restart()
		}
	}
}
