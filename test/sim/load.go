package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/test/stack"
)

// queues of the played installation. The deadlines are short, so that what hangs
// is seen to be dealt with within a run.
func queues() []book.Queue {
	rules := workload.Rules{
		Life: workload.Life{ReadyDeadline: workload.Duration(40 * time.Second)}, BackoffFirst: workload.Duration(2 * time.Second),
		BackoffMost: workload.Duration(20 * time.Second), ForceAfter: workload.Duration(20 * time.Second),
	}
	many := 1000
	rules.Requeues = &many
	return []book.Queue{
		{Name: "loose", Namespaces: []string{"team"}, Strategy: quota.BestEffortFIFO, Rules: rules},
		{Name: "strict", Namespaces: []string{"team"}, Strategy: quota.StrictFIFO, Rules: rules},
	}
}

// build makes the machines.
func (w *World) build() {
	w.machine("intake-1", bootIntake)
	w.machine("intake-2", bootIntake)
	w.machine("capacity-watcher-1", bootWatcher)
	w.machine("capacity-watcher-2", bootWatcher)
	w.machine("queue-manager-1", bootManager)
	w.machine("queue-manager-2", bootManager)
	w.machine("dispatcher-1", bootDispatcher)
	w.machine("dispatcher-2", bootDispatcher)
}

// submission is a gang as its submitter sees it.
type submission struct {
	id    workload.ID
	name  string
	queue string
	data  []byte
	pods  int
	told  bool // that it is queued
	// stored is how often NATS had lost messages when it took this one; -1 before. Who
	// has its answer relies on it, and submits again only when NATS has lost some.
	stored  int
	running time.Time
	run     time.Duration
	final   workload.Phase
	excused bool // somebody deleted its object: it may have been created again
}

// submitter submits gangs, lets them run for a while and cancels them; what is not
// answered it does again. It does not fail.
type submitter struct {
	w     *World
	all   []*submission
	by    map[workload.ID]*submission
	count int
	// readTo is how far the stream of events has been read, readOf which one it was.
	readTo uint64
	readOf time.Time
}

const (
	submitterSource = "sim"
	// tryAgain is when a submitter that has no answer repeats itself.
	tryAgain = 4 * time.Second
)

func newSubmitter(w *World) *submitter {
	s := &submitter{w: w, by: map[workload.ID]*submission{}}
	load := rand.New(rand.NewPCG(w.Seed, 3))
	largest := map[string]int64{}
	for range 6 + load.IntN(14) {
		name, queue := fmt.Sprintf("gang-%d", len(s.all)), []string{"loose", "strict"}[load.IntN(2)]
		workers, gpus := 1+load.IntN(5), 1+load.IntN(4)
		if w.tight() { // gangs are alike, and two queues full of them leave nodes to move to
			workers, gpus = 2*(1+workers%2), 1+gpus%2
		}
		largest[queue] = max(largest[queue], int64(workers*gpus))
		envelope := event.Envelope{
			SpecVersion: event.SpecVersion, ID: name, Source: submitterSource, Type: event.SubmitType,
			DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, workers, gpus)),
		}
		data, err := envelope.Encode()
		if err != nil {
			panic(err) // plain data can always be encoded
		}
		each := &submission{
			id: event.WorkloadID(submitterSource, name), name: name, queue: queue, data: data, pods: workers + 1, stored: -1,
			run: time.Second + time.Duration(load.Int64N(int64(25*time.Second))).Truncate(time.Millisecond),
		}
		s.all, s.by[each.id] = append(s.all, each), each
		w.after(time.Duration(load.Int64N(int64(faultsFor*3/4))).Truncate(time.Millisecond), func() { s.drive(each) })
	}
	if w.tight() {
		w.disk.govern(largest)
	}
	w.after(time.Second, s.look)
	return s
}

func (s *submitter) nameOf(id workload.ID) string {
	if each := s.by[id]; each != nil {
		return each.name
	}
	return cmp.Or(string(id), "nobody")
}

// drive does what the submitter would do next, and again later.
func (s *submitter) drive(each *submission) {
	w := s.w
	if each.final != "" {
		return
	}
	switch {
	case !each.told && each.stored != w.net.losses:
		s.send(bus.SubmitSubject(each.queue), each.name, each.data, func() { each.stored = w.net.losses })
	case !each.running.IsZero() && w.now.Sub(each.running) >= each.run:
		s.cancel(each)
	}
	w.after(tryAgain, func() { s.drive(each) })
}

func (s *submitter) cancel(each *submission) {
	s.count++
	envelope, err := event.New(fmt.Sprintf("cancel-%d", s.count), submitterSource, s.w.now, &event.WorkloadCancel{Workload: each.id, Why: "it has run"})
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	data, err := envelope.Encode()
	if err != nil {
		panic(err) // the same
	}
	s.send(bus.WorkloadSubject(each.queue), envelope.ID, data, func() {})
}

// cancelAny cancels somebody who does not expect it.
func (s *submitter) cancelAny(pick uint64) string {
	each := s.all[pick%uint64(len(s.all))]
	if !each.told || each.final != "" {
		return ""
	}
	s.cancel(each)
	return each.name
}

// send sends a message; stored is called when NATS has it.
func (s *submitter) send(subject, id string, data []byte, stored func()) {
	s.count++
	// A message id of its own: a repetition must reach Muster, not NATS' memory.
	id = fmt.Sprintf("%s#%d", id, s.count)
	s.w.after(s.w.latency(), func() {
		if !s.w.net.down(natsServer) {
			if _, err := s.w.net.store(subject, id, data, nil); err == nil { // without an answer it comes again
				stored()
			}
		}
	})
}

// look reads the stream of events, which may be lost, and asks queue-manager, whose
// answer is Postgres'.
func (s *submitter) look() {
	w := s.w
	if st := w.net.streams[bus.EventsStream]; st != nil && !w.net.down(natsServer) {
		if !st.created.Equal(s.readOf) || st.last < s.readTo {
			s.readOf, s.readTo = st.created, 0
		}
		for _, m := range st.messages {
			if changed, ok := payloadAfter(m, s.readTo).(*event.WorkloadChanged); ok {
				s.heard(changed.Record)
			}
		}
		s.readTo = st.last
	}
	if !w.net.down(postgresServer) {
		for _, each := range s.all {
			if record, known := w.disk.record(each.id); known {
				s.heard(record)
			}
		}
	}
	w.ended = !slices.ContainsFunc(s.all, func(each *submission) bool { return each.final == "" }) && w.check.clean()
	w.check.overdue()
	w.after(time.Second, s.look)
}

func (s *submitter) heard(r workload.Record) {
	each := s.by[r.ID]
	if each == nil {
		s.w.breach("G3", "there is a workload %s that nobody submitted", r.ID)
		return
	}
	if !each.told {
		each.told = true
		s.w.check.promised[r.ID] = true
	}
	if r.Phase == workload.Running && each.running.IsZero() {
		each.running = s.w.now
	}
	if r.Phase.Final() && each.final == "" {
		each.final = r.Phase
		s.w.tell("%s is %s", each.name, r.Phase)
	}
}

// payloadAfter is the payload of a message behind a place in its stream.
func payloadAfter(m bus.Delivery, place uint64) event.Payload {
	if m.Sequence <= place {
		return nil
	}
	return payloadOf(m)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func words(names []string) string { return strings.Join(names, ", ") }
