package suite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/test/recorder"
)

// Leader stands for the queue-manager that leads when a fault begins.
const Leader = "the leader"

// Trial is a fault that is caused several times.
type Trial struct {
	Parts []string // at once
	Fault Fault
	For   time.Duration
	// Rival: the fault lasts until the other queue-manager leads, so that there are
	// two who believe that they do.
	Rival bool
	// And is a second fault at the same time; nil for none.
	And *Trial
}

// String says what is done.
func (t Trial) String() string {
	if t.And != nil {
		first := t
		first.And = nil
		return first.String() + ", and " + t.And.String()
	}
	what := fmt.Sprintf("%s %s", strings.Join(t.Parts, " and "), t.Fault)
	if t.Rival {
		return what + " until the other one leads, then on again: two leaders at once"
	}
	if t.For >= time.Second {
		what += " for " + t.For.String()
	}
	return what
}

// Outcome is what came of a fault.
type Outcome struct {
	Trial
	Runs int
	// Gangs that went through the installation beside the faults.
	Gangs int
	// Recovered is how long after the end of each fault a gang ran that was submitted
	// then.
	Recovered []time.Duration
	// Broken are the promises that were found broken.
	Broken []string
	// NotHere says why it was not tried.
	NotHere string
}

// Trials are all faults that processes of one machine can be made to have. away is
// how long the API server is away.
func Trials(away time.Duration) []Trial {
	trials := []Trial{
		{Parts: []string{Leader}, Fault: Paused, Rival: true},
		{Parts: []string{Leader}, Fault: CutFromPostgres, Rival: true},
		{Parts: []string{Leader}, Fault: CutInCommit, For: 3 * time.Second},
		{Parts: []string{Postgres}, Fault: Killed, For: 3 * time.Second},
		{Parts: []string{Postgres}, Fault: Terminated},
		{Parts: []string{NATS(1)}, Fault: Wiped, For: 3 * time.Second},
		{Parts: []string{NATS(1)}, Fault: Purged},
		{Parts: []string{NATS(1)}, Fault: StreamsGone},
		{Parts: []string{NATS(1)}, Fault: StreamsBare},
		{Parts: []string{CapacityWatcher, Dispatcher}, Fault: CutFromAPI, For: away},
		{Parts: []string{Dispatcher}, Fault: Killed, For: time.Second},
		{Parts: []string{NATS(1)}, Fault: Killed, For: 3 * time.Second},
		{Parts: []string{NATS(1)}, Fault: Paused, For: 8 * time.Second},
		{Parts: []string{Leader}, Fault: Killed, For: time.Second},
		{Parts: []string{Leader}, Fault: CutFromNATS, For: 15 * time.Second},
		{Parts: []string{Leader}, Fault: HalfClosedNATS, For: time.Second},
		{Parts: []string{Leader}, Fault: HalfClosedPostgres, For: time.Second},
		{Parts: []string{Leader}, Fault: LatePostgres, For: 15 * time.Second},
		{Parts: Services(), Fault: LateNATS, For: 15 * time.Second},
		{Parts: []string{Intake, CapacityWatcher, Dispatcher}, Fault: HalfClosedNATS, For: time.Second},
		{Parts: []string{QueueManager(1), QueueManager(2)}, Fault: Killed, For: time.Second},
	}
	for _, part := range []string{Intake, CapacityWatcher, Dispatcher} {
		if part != Dispatcher {
			trials = append(trials, Trial{Parts: []string{part}, Fault: Killed, For: time.Second})
		}
		trials = append(trials,
			Trial{Parts: []string{part}, Fault: Paused, For: 5 * time.Second},
			Trial{Parts: []string{part}, Fault: CutFromNATS, For: 8 * time.Second})
	}
	return append(trials, Trial{Parts: append([]string{Postgres, NATS(1)}, Services()...), Fault: Killed, For: time.Second})
}

// Pairs draws so many pairs of faults that do not strike the same part.
func Pairs(trials []Trial, count int, random *rand.Rand) (pairs []Trial) {
	for tries := 0; len(pairs) < count && tries < 1000*count; tries++ {
		first, second := trials[random.IntN(len(trials))], trials[random.IntN(len(trials))]
		if first.Rival || second.Rival || first.touches(second) {
			continue
		}
		first.And = &second
		pairs = append(pairs, first)
	}
	return pairs
}

// touches reports whether two faults strike the same part.
func (t Trial) touches(other Trial) bool {
	parts := func(of Trial) map[string]bool {
		all := map[string]bool{}
		for _, part := range of.Parts {
			all[part] = true
			if part == Leader { // it may be either
				for i := range QueueManagers {
					all[QueueManager(i+1)] = true
				}
			}
		}
		return all
	}
	theirs := parts(other)
	for part := range parts(t) {
		if theirs[part] {
			return true
		}
	}
	return false
}

// Plan is what Chaos does.
type Plan struct {
	Trials []Trial
	Runs   int    // of each trial
	Gangs  int    // of each run, at least 4
	Seed   uint64 // of what is submitted
}

// Chaos causes every fault so many times under load, and after each run checks what
// must hold.
func Chaos(t *testing.T, p Provider, plan Plan) []Outcome {
	t.Logf("parts are %s", p.Name())
	w := newWorld(t, p, Shape{NATS: 1, Mixed: true})
	w.random = rand.New(rand.NewPCG(plan.Seed, 2))
	w.record(t)
	var outcomes []Outcome
	for _, trial := range plan.Trials {
		outcome := Outcome{Trial: trial}
		t.Run(strings.ReplaceAll(trial.String(), " ", "-"), func(t *testing.T) {
			for range plan.Runs {
				if !w.trial(t, &outcome, plan.Gangs) {
					break
				}
			}
			for _, each := range outcome.Broken {
				t.Error(each)
			}
		})
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// record has a bystander watch all pods.
func (w *world) record(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.access.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if w.recorder, err = recorder.Start(w.ctx, client); err != nil {
		t.Fatal(err)
	}
}

// trial is one run of a fault; it reports whether there may be another one.
func (w *world) trial(t *testing.T, outcome *Outcome, gangs int) bool {
	t.Helper()
	var ids []workload.ID
	submit := func(count int) {
		for range count {
			ids = append(ids, w.submitDrawn(t))
		}
	}
	submit(gangs - gangs/3 - 1) // a backlog for the fault to fall into
	w.anyDispatched(t, ids)
	began := time.Now()
	mend, err := w.strike(t, outcome.Trial)
	if errors.Is(err, ErrNotHere) {
		outcome.NotHere = err.Error()
		return false
	}
	outcome.Runs++
	if err != nil {
		outcome.Broken = append(outcome.Broken, fmt.Sprintf("the fault could not be caused: %v", err))
		return false
	}
	submit(gangs / 3)
	if !outcome.Rival {
		lasts := outcome.For
		if outcome.And != nil {
			lasts = max(lasts, outcome.And.For)
		}
		select {
		case <-time.After(lasts): // the length of a fault is what is tested
		case <-t.Context().Done():
		}
	}
	if err := mend(w.ctx); err != nil {
		outcome.Broken = append(outcome.Broken, fmt.Sprintf("the fault could not be ended: %v", err))
		return false
	}
	mended := time.Now()
	probe := w.submit(t)
	ids = append(ids, probe)
	w.running(t, probe)
	outcome.Recovered = append(outcome.Recovered, time.Since(mended))
	w.until(t, "all gangs are at their end", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(ids, func(id workload.ID) bool { return !w.gangOf(id).phase.Final() })
	})
	w.until(t, "nothing is left in Kubernetes", func() bool { return w.checker.NothingLeft(w.ctx) })
	outcome.Gangs += len(ids)
	outcome.Broken = append(outcome.Broken, w.verify()...)
	t.Logf("run %d: fault of %s, recovered %s after it; %d gangs", outcome.Runs, mended.Sub(began).Round(time.Millisecond),
		outcome.Recovered[len(outcome.Recovered)-1].Round(time.Millisecond), len(ids))
	return true
}

// anyDispatched waits until an object of the gangs has been created: the fault must
// fall into work.
func (w *world) anyDispatched(t *testing.T, ids []workload.ID) {
	t.Helper()
	w.until(t, "a gang is dispatched", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(ids, func(id workload.ID) bool {
			now := w.gangOf(id).phase
			return now != "" && now != workload.Queued && now != workload.Admitted
		})
	})
}

// strike causes the fault of a trial.
func (w *world) strike(t *testing.T, trial Trial) (mend func(context.Context) error, err error) {
	t.Helper()
	var mends []func(context.Context) error
	heal := func(ctx context.Context) error {
		var failed []error
		for _, each := range mends {
			failed = append(failed, each(ctx))
		}
		return errors.Join(failed...)
	}
	leader, epoch := w.leader(t)
	for each := &trial; each != nil; each = each.And {
		for _, part := range each.Parts {
			if part == Leader {
				part = leader
			}
			mend, err := w.Break(w.ctx, part, each.Fault)
			if err != nil {
				return nil, errors.Join(err, heal(w.ctx))
			}
			mends = append(mends, mend)
		}
	}
	if trial.Rival {
		w.until(t, "the other queue-manager leads", func() bool {
			now, later := w.leader(t)
			return now != leader && later > epoch
		})
	}
	return heal, nil
}
