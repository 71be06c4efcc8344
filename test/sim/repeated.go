package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/test/stack"
)

// A submitter may send what was refused once more, and within the time for which NATS knows
// the first message. Each of its messages gets an answer.

// drawRepeated draws submissions that are refused and come again.
func drawRepeated(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classRepeated)+100))
	for range 2 + random.IntN(5) {
		timed = append(timed, TimedFault{
			At:    5*time.Second + time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
			Fault: Repeated, Pick: random.Uint64() >> 12,
		})
	}
	return timed
}

// answerBy bounds how long an answer to a submission takes when nothing fails.
const answerBy = time.Minute

// question is a submission of which the answer names its message id.
type question struct {
	each   *submission
	sent   time.Time
	losses int // of NATS, when it took the message
	again  bool
	over   bool // it was answered, or NATS has lost messages
	data   []byte
}

// repeat submits another gang under the id of one that is known, which is refused, and the
// same once more when the refusal has come.
func (s *submitter) repeat(f TimedFault) string {
	var of []*submission
	for _, each := range s.all {
		if each.announced {
			of = append(of, each)
		}
	}
	if len(of) == 0 {
		return ""
	}
	each := of[f.Pick%uint64(len(of))]
	envelope := event.Envelope{
		SpecVersion: event.SpecVersion, ID: each.name, Source: submitterSource, Type: event.SubmitType,
		DataContentType: "application/json", Data: []byte(stack.RayCluster(each.name, each.pods, 1)), // a pod more
	}
	data, err := envelope.Encode()
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	s.askWith(question{each: each, data: data})
	return fmt.Sprintf("%s with another gang", each.name)
}

// askWith sends a submission and waits for its answer from when NATS has it.
func (s *submitter) askWith(q question) {
	var id string
	id = s.send(event.SubmitSubject(q.each.queue), q.each.name, q.data, func() {
		q.sent, q.losses = s.w.now, s.w.net.losses
		s.questions[id] = &q
	})
}

// answered notes the answer to a message, and reports whether it is one to such a message.
func (s *submitter) answered(r *event.WorkloadRejected) bool {
	q, asked := s.questions[r.MessageID]
	if !asked || q.over { // the event may come again with a stream
		return asked
	}
	q.over = true
	s.w.check.made[madeRepeated]++
	if !q.again {
		s.askWith(question{each: q.each, data: q.data, again: true})
	}
	return true
}

// asks reports whether an answer is still waited for.
func (s *submitter) asks() bool {
	for _, q := range s.questions {
		if !q.over {
			return true
		}
	}
	return false
}

// overdueAnswers: each message of a submitter has its answer, unless NATS has lost some.
func (c *checker) overdueAnswers() {
	w := c.w
	for _, id := range sortedKeys(w.submits.questions) {
		switch q := w.submits.questions[id]; {
		case q.over:
		case q.losses != w.net.losses:
			q.over = true
		case w.now.Sub(later(q.sent, w.nemesis.last)) > answerBy:
			w.breach("G7", "the submission %s of %s has no answer after %s", id, q.each.name, w.now.Sub(q.sent))
		}
	}
}
