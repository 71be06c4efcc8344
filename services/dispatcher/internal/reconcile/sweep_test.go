package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

func present(attempt int, epoch int64) *event.GangCommand {
	return &event.GangCommand{
		Workload: "w", Cluster: "c", Attempt: attempt, Epoch: epoch, Order: 1, State: event.Present, Kind: "RayCluster", Namespace: "n", Name: "w",
	}
}

func (p *played) has(attempt int, epoch int64) {
	p.cluster.objects["w"] = &kubernetes.Object{
		Kind: "RayCluster", Namespace: "n", Name: "w", UID: "uid", Workload: "w", Attempt: attempt, Epoch: epoch, Stamped: true,
	}
}

// answer is that of queue-manager to one question.
type answer struct {
	record *workload.Record
	err    error
}

// The sweep asks about the commands, too. What queue-manager does
// not know twice in a row, while the command is the same, is removed; nothing is
// removed without an answer.
func TestTheSweepAsksAboutWhatItKnows(t *testing.T) {
	t.Parallel()
	holds := func(attempt int) answer {
		return answer{record: &workload.Record{Attempt: attempt, Phase: workload.Running, Holding: true}}
	}
	unknown, silent := answer{}, answer{err: errors.New("no answer")}
	waits := answer{record: &workload.Record{Attempt: 1, Phase: workload.Queued}}
	for name, c := range map[string]struct {
		answers []answer
		again   int // before this sweep another command comes; 0 for never
		removed bool
	}{
		"known":                       {answers: []answer{holds(1), holds(1), holds(1)}},
		"an earlier attempt is known": {answers: []answer{holds(0), holds(0), holds(0)}},
		"no answer":                   {answers: []answer{silent, silent, silent}},
		"unknown once":                {answers: []answer{unknown}},
		"unknown twice":               {answers: []answer{unknown, unknown}, removed: true},
		"it waits":                    {answers: []answer{waits, waits}, removed: true},
		"a later attempt holds":       {answers: []answer{holds(2), holds(2)}, removed: true},
		"unknown, known, unknown":     {answers: []answer{unknown, holds(1), unknown}},
		"unknown, silence, unknown":   {answers: []answer{unknown, silent, unknown}, removed: true},
		"a command in between":        {answers: []answer{unknown, unknown}, again: 1},
		"and unknown after it":        {answers: []answer{unknown, unknown, unknown}, again: 1, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.has(1, 1)
			p.Command(present(1, 1))
			for i, each := range c.answers {
				if c.again > 0 && i == c.again {
					p.Command(present(1, 2))
				}
				p.Sweep(t.Context(), func(_ context.Context, id workload.ID) (*workload.Record, error) {
					if id != "w" {
						t.Errorf("asked about %q", id)
					}
					return each.record, each.err
				})
				if i < len(c.answers)-1 || !c.removed {
					_ = p.see(t, 1)
					if len(p.cluster.deleted) > 0 {
						t.Fatalf("after sweep %d there is deleted: %v", i+1, p.cluster.deleted)
					}
				}
			}
			if c.removed {
				_ = p.see(t, 1)
				if len(p.cluster.deleted) != 1 || p.cluster.deleted[0] != "w" {
					t.Errorf("deleted: %v, want the object", p.cluster.deleted)
				}
			}
		})
	}
}

// A sweep asks a bounded number of questions, and the workloads take turns.
func TestTheSweepAsksInTurns(t *testing.T) {
	t.Parallel()
	p := play(t)
	const count = 2*askMost + askMost/2
	for i := range count {
		command := present(1, 1)
		command.Workload = workload.ID(fmt.Sprintf("w-%03d", i))
		p.Command(command)
	}
	asked := map[workload.ID]int{}
	for range 3 {
		before := len(asked)
		questions := 0
		p.Sweep(t.Context(), func(_ context.Context, id workload.ID) (*workload.Record, error) {
			asked[id]++
			questions++
			return &workload.Record{Attempt: 1, Holding: true}, nil
		})
		if questions > askMost {
			t.Errorf("a sweep asked %d questions, want at most %d", questions, askMost)
		}
		if len(asked) == before {
			t.Error("a sweep asked about nothing new")
		}
	}
	if len(asked) != count {
		t.Errorf("three sweeps asked about %d of %d workloads", len(asked), count)
	}
}

// An object of a later attempt than the command's stays. When it is older than the
// command, Postgres was restored to a state older than it, and queue-manager hears of it.
func TestALaterAttemptIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state       string
		objectEpoch int64
		later       int
	}{
		"the removal is of a restored ledger": {event.Absent, 3, 4},
		"the removal is a late one":           {event.Absent, 7, 0},
		"the start is of a restored ledger":   {event.Present, 3, 4},
		"the start is a late one":             {event.Present, 7, 0},
	} {
		for kind, command := range map[string]event.GangCommand{"a Ray object": *present(2, 5), "an AppWrapper": wrappedMaking(t, "b", "b")} {
			for _, created := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/created %t", name, kind, created), func(t *testing.T) {
					t.Parallel()
					status := event.GangStatus{Workload: "w", Cluster: "c", Attempt: 2, Epoch: 5, Created: created}
					p := play(t, status)
					p.has(4, c.objectEpoch)
					p.cluster.items[thingB] = itemOf("w", 4)
					p.cluster.items[thingB].Epoch = c.objectEpoch
					command := command
					command.Attempt, command.Epoch, command.State = 2, 5, c.state
					p.Command(&command)
					_ = p.see(t, 3)
					if p.status.Later != c.later {
						t.Errorf("told is %+v, want the later attempt %d", p.status, c.later)
					}
					if len(p.cluster.deleted) > 0 || p.status.Gone || p.status.Released {
						t.Errorf("deleted: %v; told is %+v", p.cluster.deleted, p.status)
					}
				})
			}
		}
	}
}

// finishedCopy makes it a job in the place of a user's that has come to its end.
func finishedCopy(o *kubernetes.Object) { o.Outcome, o.Home = event.OutcomeFailed, true }

// TestSweepRemovesOrphans: an object of ours goes when queue-manager answers that its
// workload does not hold places in that attempt, and when it is still what the cache
// shows.
func TestSweepRemovesOrphans(t *testing.T) {
	t.Parallel()
	holds := answer{record: &workload.Record{Attempt: 1, Phase: workload.Running, Holding: true}}
	over := answer{record: &workload.Record{Attempt: 1, Phase: workload.Succeeded}}
	for name, c := range map[string]struct {
		answer  answer
		listed  func(*kubernetes.Object)
		live    func(*kubernetes.Object)
		command *event.GangCommand
		removed bool
	}{
		"unknown":                    {removed: true},
		"its workload is over":       {answer: over, removed: true},
		"its workload holds places":  {answer: holds},
		"of a later attempt":         {answer: answer{record: &workload.Record{Attempt: 2, Holding: true}}, removed: true},
		"no answer":                  {answer: answer{err: errors.New("no answer")}},
		"there is a command":         {answer: holds, command: present(1, 1)},
		"the command is of the past": {command: present(2, 1), removed: true},
		"not made by Muster":         {listed: func(o *kubernetes.Object) { o.Stamped = false }},
		"on its way out":             {listed: func(o *kubernetes.Object) { o.Deleting = true }},
		"a finished job":             {listed: func(o *kubernetes.Object) { o.Outcome = event.OutcomeFailed }},
		"a finished copy":            {listed: finishedCopy, live: finishedCopy, removed: true},
		"another one by now":         {live: func(o *kubernetes.Object) { o.UID = "another" }},
		"another workload's by now":  {live: func(o *kubernetes.Object) { o.Workload = "other" }},
		"it has finished by now":     {live: func(o *kubernetes.Object) { o.Outcome = event.OutcomeSucceeded }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			listed, live := *rayOf("w", 1), *rayOf("w", 1)
			if c.listed != nil {
				c.listed(&listed)
			}
			if c.live != nil {
				c.live(&live)
			}
			p.cluster.listed, p.cluster.objects["r"] = []kubernetes.Object{listed}, &live
			if c.command != nil {
				p.Command(c.command)
			}
			p.Sweep(t.Context(), func(context.Context, workload.ID) (*workload.Record, error) { return c.answer.record, c.answer.err })
			if got := len(p.cluster.deleted) == 1; got != c.removed {
				t.Errorf("deleted are %v, want a removal: %v", p.cluster.deleted, c.removed)
			}
		})
	}
}

// TestSweepRemovesOrphanedPods: pods with all of our labels go when nothing makes them
// and queue-manager answers that their workload does not hold places.
func TestSweepRemovesOrphanedPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*gang.Pod)
		answer  answer
		removed bool
	}{
		"unknown":                  {removed: true},
		"no answer":                {answer: answer{err: errors.New("no answer")}},
		"its workload is there":    {answer: answer{record: &workload.Record{Attempt: 1, Holding: true}}},
		"without an attempt":       {change: func(p *gang.Pod) { p.Attempt = 0 }},
		"without a pod set":        {change: func(p *gang.Pod) { p.PodSet = "" }},
		"it has ended":             {change: func(p *gang.Pod) { p.Ended = true }},
		"it is being deleted":      {change: func(p *gang.Pod) { p.Deleting = true }},
		"a Job makes it":           {change: func(p *gang.Pod) { p.Controller = gang.Controller{Kind: "Job", UID: "j"} }},
		"a RayCluster has made it": {change: func(p *gang.Pod) { p.Controller = gang.Controller{Kind: "RayCluster", UID: "gone"} }, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			pod := gang.Pod{Namespace: "n", Name: "p", UID: "p", Workload: "w", Attempt: 1, PodSet: "g"}
			if c.change != nil {
				c.change(&pod)
			}
			p.cluster.pods, p.cluster.orphans = []gang.Pod{pod}, []gang.Pod{pod}
			p.Sweep(t.Context(), func(context.Context, workload.ID) (*workload.Record, error) { return c.answer.record, c.answer.err })
			if got := len(p.cluster.deleted) == 1; got != c.removed {
				t.Errorf("deleted are %v, want a removal: %v", p.cluster.deleted, c.removed)
			}
		})
	}
}
