package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
)

// checkedQueue is oneQueue with a check of another controller.
func checkedQueue() string {
	return strings.NewReplacer("kueue.x-k8s.io/provisioning-request", "example.com/budget", "ProvisioningRequestConfig, name: rayjob-gpu-config", "Account, name: team-a").
		Replace(oneQueue)
}

func (w *world) answer(check string, id workload.ID, number int, status workload.CheckStatus, message string) {
	w.t.Helper()
	w.publish(event.CheckedSubject(check), &event.CheckAnswer{Check: check, Workload: id, Number: number, Status: status, Message: message})
}

func (w *world) asked(check string, what string, matches func(*event.CheckWanted) bool) *event.CheckWanted {
	w.t.Helper()
	return await(w, what, func(p *event.CheckWanted) bool { return p.Check == check && matches(p) })
}

// TestACheckDecidesByMessage over NATS and Postgres, with the leader replaced in each step.
func TestACheckDecidesByMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 8)
	w.apply(checkedQueue())
	if q := w.queue("user-queue"); q.Inactive != "" {
		t.Errorf("the queue is inactive: %s", q.Inactive)
	}
	id := w.submit(gangOf("first", "user-queue", 1))
	open := w.asked("rayjob-gpu", "the check is asked", func(p *event.CheckWanted) bool { return p.Workload == id && p.State == event.CheckOpen })
	if open.ControllerName != "example.com/budget" || open.Parameters == nil || open.Parameters.Kind != "Account" || open.Name != "first" || open.Number != 1 || !open.QuotaReserved {
		t.Errorf("it is asked %+v", open)
	}
	if why := w.waits(id, workload.ReasonAdmissionCheck).Reason.Message; !strings.HasPrefix(why, `AdmissionCheck "rayjob-gpu" has not answered since 20`) {
		t.Errorf("it waits because %q", why)
	}
	next := w.submit(gangOf("next", "user-queue", 1))
	w.waits(next, workload.ReasonQuota)
	if q := w.queue("user-queue"); q.Provisioning != 1 {
		t.Errorf("%d hold quota, want one", q.Provisioning)
	}
	w.stop()
	w.start()
	w.answer("rayjob-gpu", id, 1, workload.CheckPending, "asking the owner")
	w.asked("rayjob-gpu", "the answer is taken in", func(p *event.CheckWanted) bool {
		return p.State == event.CheckOpen && p.Answer != nil && p.Answer.Status == workload.CheckPending && p.Answer.Refused == ""
	})
	w.stop()
	w.start()
	if why := w.one(id).Reason.Message; !strings.Contains(why, ": asking the owner") {
		t.Errorf("it waits because %q", why)
	}
	w.answer("rayjob-gpu", id, 7, workload.CheckReady, "")
	w.asked("rayjob-gpu", "the wrong number is refused", func(p *event.CheckWanted) bool {
		return p.Answer != nil && p.Answer.Refused == "it answers request 7, and the present one is 1"
	})
	w.answer("rayjob-gpu", id, 1, workload.CheckReady, "granted")
	w.command(id, event.Present, 1)
	w.answer("rayjob-gpu", next, 1, workload.CheckReady, "too early")
	w.asked("rayjob-gpu", "an answer without a request is refused", func(p *event.CheckWanted) bool {
		return p.Workload == next && p.State == event.CheckClosed && p.Answer.Refused == "the workload is not put to this check now"
	})
	w.stop()
	w.start()
	w.answer("rayjob-gpu", id, 1, workload.CheckRejected, "the money is gone")
	w.command(id, event.Absent, 1)
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true, Gone: true, Released: true})
	await(w, "it fails", func(p *event.WorkloadChanged) bool {
		return p.ID == id && p.Phase == workload.Failed && p.Reason.Message == `AdmissionCheck "rayjob-gpu" rejected it: the money is gone`
	})
	w.asked("rayjob-gpu", "its request is closed", func(p *event.CheckWanted) bool { return p.Workload == id && p.State == event.CheckClosed })
	w.answer("rayjob-gpu", id, 1, workload.CheckReady, "late")
	w.asked("rayjob-gpu", "a late answer is refused", func(p *event.CheckWanted) bool {
		return p.Workload == id && p.Answer != nil && p.Answer.Refused == "the workload has ended"
	})
	w.asked("rayjob-gpu", "the next gang has its turn", func(p *event.CheckWanted) bool { return p.Workload == next && p.State == event.CheckOpen })
}

// TestAnswersOnOtherSubjectsAreDeadLetters: the subject is what NATS lets a checker use, so an
// answer of a check on another's, and anything else on that of a check, changes nothing.
func TestAnswersOnOtherSubjectsAreDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 8)
	w.apply(checkedQueue())
	id := w.submit(gangOf("first", "user-queue", 1))
	w.asked("rayjob-gpu", "the check is asked", func(p *event.CheckWanted) bool { return p.Workload == id })
	answer := &event.CheckAnswer{Check: "rayjob-gpu", Workload: id, Number: 1, Status: workload.CheckReady}
	w.publish(event.CheckedSubject("licence"), answer)
	w.publish(event.WorkloadSubject("user-queue"), answer)
	w.publish(event.CheckedSubject("licence"), &event.WorkloadCancel{Workload: id})
	w.deadLettered(3)
	letters, err := w.bus.DeadLetters(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var dead []string
	for _, letter := range letters {
		dead = append(dead, letter.Subject)
	}
	slices.Sort(dead)
	if want := []string{"muster.checked.licence", "muster.checked.licence", "muster.workload.user-queue"}; !slices.Equal(dead, want) {
		t.Errorf("dead letters are %q, want %q", dead, want)
	}
	if got := w.one(id); got.Phase != workload.Queued || got.Reason.Kind != workload.ReasonAdmissionCheck {
		t.Errorf("it is %s with %+v", got.Phase, got.Reason)
	}
}

// TestAnAnswerThatIsLostIsAskedForAgain: an answer is purged before a leader has read it, and
// only its checker can give it again.
func TestAnAnswerThatIsLostIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 8)
	w.apply(checkedQueue())
	id := w.submit(gangOf("first", "user-queue", 1))
	w.asked("rayjob-gpu", "the check is asked", func(p *event.CheckWanted) bool { return p.Workload == id })
	w.answer("rayjob-gpu", id, 1, workload.CheckPending, "asking the owner")
	w.asked("rayjob-gpu", "the answer is taken in", func(p *event.CheckWanted) bool { return p.Answer != nil })
	w.stop()
	asked := func() int {
		var n int
		for _, p := range bustest.Heard[*event.CheckWanted](w.heard) {
			if p.State == event.CheckOpen && p.Answer != nil && p.Answer.Status == workload.CheckPending && p.Answer.Message == "asking the owner" {
				n++
			}
		}
		return n
	}
	before := asked()
	w.answer("rayjob-gpu", id, 1, workload.CheckReady, "")
	stream, err := jetStream(w).Stream(w.ctx, bus.CheckedStream)
	if err == nil {
		err = stream.Purge(w.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	w.asked("rayjob-gpu", "the check is asked again, with the answer that was taken in", func(*event.CheckWanted) bool { return asked() > before })
	w.answer("rayjob-gpu", id, 1, workload.CheckReady, "")
	w.command(id, event.Present, 1)
}

// TestOpenChecksComeAgainAfterALoss of their stream, while nothing else is published there.
func TestOpenChecksComeAgainAfterALoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 8)
	w.apply(checkedQueue())
	id := w.submit(gangOf("first", "user-queue", 1))
	w.asked("rayjob-gpu", "the check is asked", func(p *event.CheckWanted) bool { return p.Workload == id })
	<-time.After(2 * lookEvery) // it has looked at the stream
	stream, err := jetStream(w).Stream(w.ctx, bus.DispatchStream)
	if err == nil {
		err = stream.Purge(w.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(patience)
	for {
		m, err := w.bus.LastMessage(w.ctx, bus.DispatchStream, event.CheckSubject("rayjob-gpu", id))
		if err == nil && m != nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the request did not come again: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
