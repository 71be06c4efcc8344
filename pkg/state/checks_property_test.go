package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// checkWorld is a state whose gangs are put to checks, with what the stream of requests has: the
// last value of each subject.
type checkWorld struct {
	*checking
	last map[string]*event.CheckWanted
	// opened are the numbers by which a check was asked about a workload, with the messages of
	// that number since.
	opened map[string]int
	ids    []workload.ID
	faults []string
}

func (w *checkWorld) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *checkWorld) take() {
	for _, m := range w.Flush().Messages {
		p, is := m.Payload.(*event.CheckWanted)
		if !is {
			continue
		}
		key := fmt.Sprintf("%s/%s/%d", p.Check, p.Workload, p.Number)
		if before := w.last[m.Subject]; p.State != event.CheckClosed && before != nil && before.State == event.CheckClosed && w.opened[key] > 0 {
			w.fault("%s is asked about %s again by number %d", p.Check, p.Workload, p.Number)
		}
		w.opened[key]++
		w.last[m.Subject] = p
	}
}

// agree compares the stream with the state.
func (w *checkWorld) agree(after string) {
	w.take()
	for subject, p := range w.last {
		e := w.live.Get(p.Workload)
		var check *workload.Check
		if e != nil {
			check = e.checks().Check(p.Check)
		}
		switch {
		case p.State == event.CheckClosed && check != nil:
			w.fault("after %s: %s is closed, and the workload waits for it: %+v", after, subject, e.checks())
		case p.State != event.CheckClosed && check == nil:
			w.fault("after %s: %s is %s, and no workload is put to it", after, subject, p.State)
		case p.State == event.CheckClosed:
		case p.Number != e.checks().Number || (p.State == event.CheckAnswered) != (check.Status == workload.CheckReady):
			w.fault("after %s: %s has number %d and is %s; the workload has %+v", after, subject, p.Number, p.State, e.checks())
		}
	}
	held := int64(0)
	for _, id := range w.ids {
		e := w.live.Get(id)
		switch {
		case e == nil:
		case e.Holding || e.Phase == workload.Queued && e.checks().Pending() && e.checks().Quota && e.Hold == nil:
			held += 8
		}
		if e != nil && e.Phase == workload.Admitted && len(e.checks().Ready()) != 2 {
			w.fault("after %s: %s is admitted, and its checks are %+v", after, id, e.checks())
		}
	}
	if held > 8 {
		w.fault("after %s: gangs hold %d CPUs of 8", after, held)
	}
}

// TestChecksLeaveNothingBehind: whatever checks answer, operators do and leaders are replaced,
// the stream has an open request exactly for each gang that waits for it, no number comes twice,
// no gang starts before its checks agree, and at the end nothing is open.
func TestChecksLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := &checkWorld{checking: newChecking(t), last: map[string]*event.CheckWanted{}, opened: map[string]int{}, ids: []workload.ID{gangID}}
		w.agree("the beginning")
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			id := rapid.SampledFrom(w.ids).Draw(r, "workload")
			e := w.live.Get(id)
			step := rapid.SampledFrom([]string{"answer", "answer", "answer", "answer", "submit", "cancel", "hold", "resume", "evict", "released", "time", "leader", "again"}).Draw(r, "step")
			switch step {
			case "answer":
				number := 1
				if e != nil && e.checks() != nil {
					number = e.checks().Number
				}
				w.CheckAnswered(&event.CheckAnswer{
					Check: rapid.SampledFrom([]string{"budget", "licence"}).Draw(r, "check"), Workload: id, Number: number + rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1}).Draw(r, "late"),
					Status: rapid.SampledFrom([]workload.CheckStatus{workload.CheckReady, workload.CheckReady, workload.CheckPending, workload.CheckRetry, workload.CheckRejected}).Draw(r, "status"),
				}, w.now)
			case "submit":
				if len(w.ids) < 4 {
					w.ids = append(w.ids, workload.ID(fmt.Sprintf("gang-%d", i)))
					w.submitJob(w.ids[len(w.ids)-1])
				}
			case "cancel":
				w.Cancel(&event.WorkloadCancel{Workload: id}, w.now)
			case "hold", "resume":
				w.Hold(&event.WorkloadHold{Workload: id, By: "op", Resume: step == "resume"}, w.now)
			case "evict":
				if e != nil && !tearingDown(e) && e.Phase != workload.Queued {
					w.evictNow(e, &workload.Reason{Kind: workload.ReasonDrained, Message: "drained"}, w.now)
				}
			case "released":
				w.releaseOf(id)
			case "time":
				w.step(time.Duration(rapid.IntRange(1, 4000).Draw(r, "seconds")) * time.Second)
			case "leader":
				w.take()
				w.replaceLeader()
			case "again":
				w.ResendCommands(w.now, func(string) bool { return true })
			}
			w.step(0)
			w.agree(step)
			if len(w.faults) > 0 {
				r.Fatal(w.faults)
			}
		}
		for _, id := range w.ids {
			w.Cancel(&event.WorkloadCancel{Workload: id}, w.now)
			w.releaseOf(id)
		}
		w.agree("the end")
		if slices.ContainsFunc(w.ids, func(id workload.ID) bool { return w.live.Get(id) != nil }) || len(w.State.lifecycle.checked) > 0 {
			w.fault("%d requests are left", len(w.State.lifecycle.checked))
		}
		if len(w.faults) > 0 {
			r.Fatal(w.faults)
		}
	})
}

// releaseOf reports that the objects of a workload that is torn down are gone.
func (w *checkWorld) releaseOf(id workload.ID) {
	if e := w.live.Get(id); e != nil && tearingDown(e) && e.Holding {
		w.Status(&event.GangStatus{Workload: id, Cluster: "c", Attempt: e.Attempt, Created: true, Gone: true, Released: true}, w.now, w.now)
	}
}
