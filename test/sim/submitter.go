package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// submitter submits gangs, lets them run for a while and cancels them; what is not
// answered it does again. It does not fail.
type submitter struct {
	w     *World
	all   []*submission
	by    map[workload.ID]*submission
	count int
	// hostile are submissions of others.
	hostile map[workload.ID]bool
	// questions are the messages that wait for an answer, by message id.
	questions map[string]*question
	// storage is what the submitters' client notes of messages that NATS does not store.
	storage bus.Storage
	// readTo is how far the stream of events has been read, readOf which one it was.
	readTo uint64
	readOf time.Time
}

func newSubmitter(w *World) *submitter {
	s := &submitter{w: w, by: map[workload.ID]*submission{}, hostile: map[workload.ID]bool{}, questions: map[string]*question{}}
	load := rand.New(rand.NewPCG(w.Seed, 3))
	largest := map[string]int64{}
	gangs, long := 6+load.IntN(14), map[string]bool{}
	if w.ruled() {
		gangs += 8
	}
	for range gangs {
		queue := []string{"loose", "strict"}[load.IntN(2)]
		workers, gpus := 1+load.IntN(5), 1+load.IntN(4)
		if w.tight() { // gangs are alike, and two queues full of them leave nodes to move to
			workers, gpus = 2*(1+workers%2), 1+gpus%2
		}
		priority := ""
		if w.ruled() { // a gang of one queue may be as large as its quota, and places are alike
			queue, gpus = ruledQueues[load.IntN(len(ruledQueues))], 1
			workers = 1 + load.IntN(int(w.disk.first.queue(queue).nominal))
			priority = fmt.Sprint(load.IntN(3))
		}
		largest[queue] = max(largest[queue], int64(workers*gpus))
		each := s.add(queue, workers, gpus, priority)
		each.run = time.Second + time.Duration(load.Int64N(int64(25*time.Second))).Truncate(time.Millisecond)
		if w.ruled() { // some go on for long after all faults are over
			each.run = 5*time.Second + 2*each.run
			if load.IntN(4) == 0 && !long[queue] {
				long[queue], each.run = true, each.run+4*time.Minute
			}
		}
		w.after(time.Duration(load.Int64N(int64(faultsFor*3/4))).Truncate(time.Millisecond), func() { s.drive(each) })
	}
	if w.tight() {
		w.disk.setQuotas(largest)
	}
	if w.scaled() {
		w.disk.scale(largest)
	}
	if w.lends() {
		s.addLate()
	}
	w.after(time.Second, s.look)
	return s
}

// add makes the submission of a gang, with a priority if one is given.
func (s *submitter) add(queue string, workers, gpus int, priority string) *submission {
	name := fmt.Sprintf("gang-%d", len(s.all))
	manifest := stack.RayCluster(name, workers, gpus)
	if priority != "" && workers > 2 && len(s.all)%3 == 0 {
		manifest = elastic(manifest)
	}
	envelope := event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: submitterSource, Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(manifest),
	}
	data, err := withPriority(envelope, priority)
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	each := &submission{id: event.WorkloadID(submitterSource, name), name: name, queue: queue, data: data, pods: workers + 1, stored: -1}
	s.all, s.by[each.id] = append(s.all, each), each
	return each
}

func (s *submitter) nameOf(id workload.ID) string {
	if each := s.by[id]; each != nil {
		return each.name
	}
	return cmp.Or(string(id), "none")
}

// drive does what the submitter would do next, and again later. That a gang has ended
// may be forgotten when Postgres is restored to an older state.
func (s *submitter) drive(each *submission) {
	w := s.w
	switch {
	case each.final != "":
	case !each.announced && each.stored != w.net.losses:
		s.send(event.SubmitSubject(each.queue), each.name, each.data, func() {
			each.stored = w.net.losses
			each.copies++
		})
	case s.countsOn(each):
	case each.until > 0 && each.announced && w.now.Sub(w.start) >= each.until, each.until == 0 && !each.running.IsZero() && w.now.Sub(each.running) >= each.run:
		s.cancel(each)
	}
	w.after(tryAgain, func() { s.drive(each) })
}

func (s *submitter) cancel(each *submission) { s.cancelThen(each, func() {}) }

// cancelThen cancels a gang; stored is called when NATS has the message.
func (s *submitter) cancelThen(each *submission, stored func()) {
	s.count++
	envelope, err := event.New(fmt.Sprintf("cancel-%d", s.count), submitterSource, s.w.now, &event.WorkloadCancel{Workload: each.id, Why: "it has run"})
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	data, err := envelope.Encode()
	if err != nil {
		panic(err) // the same
	}
	s.send(event.WorkloadSubject(each.queue), envelope.ID, data, stored)
}

// cancelAny cancels a gang that does not expect it.
func (s *submitter) cancelAny(pick uint64) string {
	each := s.all[pick%uint64(len(s.all))]
	if !each.announced || each.final != "" {
		return ""
	}
	s.cancel(each)
	return each.name
}

// send sends a message and returns its id; stored is called when NATS has it.
func (s *submitter) send(subject, id string, data []byte, stored func()) string {
	s.count++
	// A message id of its own: a repetition must reach Muster, not NATS' memory.
	id = fmt.Sprintf("%s#%d", id, s.count)
	s.w.after(s.w.latency(), func() {
		if !s.w.net.down(natsServer) {
			_, err := s.w.net.store(subject, id, data, nil)
			s.storage.Note(subject, err, s.w.now)
			if err == nil { // without an answer it comes again
				stored()
			}
		}
	})
	return id
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
			switch p := payloadAfter(m, s.readTo).(type) {
			case *event.WorkloadChanged:
				s.heard(p.Record)
				if each := s.by[p.ID]; each != nil {
					each.shows(p.Record)
					each.heard, each.ended = true, each.ended || p.Phase.Final()
				}
			case *event.WorkloadRejected:
				s.rejected(p)
			}
		}
		s.readTo = st.last
	}
	if !w.net.down(postgresServer) {
		for _, each := range s.all {
			if record, known := w.disk.record(each.id); known {
				if each.doubtful && !record.Phase.Final() {
					each.final, each.doubtful = "", false
				}
				s.heard(record)
			}
		}
	}
	w.check.overdueAnswers()
	w.ended = !slices.ContainsFunc(s.all, func(each *submission) bool { return each.final == "" }) && w.check.clean() && !s.asks()
	w.check.overdueEarly()
	w.check.overdueLapse()
	w.check.othersGoOn()
	w.check.overdue()
	w.after(time.Second, s.look)
}

// rejectedPhase is the end of a submission that was never taken in.
const rejectedPhase workload.Phase = "rejected"

// changedIn is what a message reports of a workload; nil for nothing.
func changedIn(m bus.Delivery) *event.WorkloadChanged {
	changed, _ := payloadOf(m).(*event.WorkloadChanged)
	return changed
}

// rejected hears that a submission is not taken in, which must have a reason.
func (s *submitter) rejected(r *event.WorkloadRejected) {
	each := s.by[r.Workload]
	if s.hostile[r.Workload] || s.answered(r) {
		return
	}
	if s.restored(r) {
		return
	}
	switch {
	case each == nil || s.w.disk.refused[r.Workload] == nil && !s.w.disk.mended:
		s.w.breach("G3", "%s was rejected: %s", s.nameOf(r.Workload), r.Reason.Message)
	case each.final == rejectedPhase:
		each.rejected++
	case each.final == "":
		each.final, each.why, each.rejected = rejectedPhase, true, each.rejected+1
		s.w.narrate("%s is rejected", each.name)
	}
}

func (s *submitter) heard(r workload.Record) {
	each := s.by[r.ID]
	if s.hostile[r.ID] {
		return
	}
	if each == nil {
		s.w.breach("G3", "there is a workload %s that was never submitted", r.ID)
		return
	}
	if !each.announced {
		each.announced = true
		s.promise(r.ID)
	}
	if each.final == rejectedPhase && !each.doubtful && !r.Phase.Final() && each.copies > each.rejected {
		each.final = "" // another copy of the submission is taken in
	}
	each.why = each.why || r.Reason != nil && r.Reason.Kind == workload.ReasonNotStorable
	if r.Phase == workload.Running && each.running.IsZero() {
		each.running = s.w.now
	}
	if r.Phase.Final() && each.final == "" {
		each.final = r.Phase
		s.w.narrate("%s is %s", each.name, r.Phase)
	}
}
