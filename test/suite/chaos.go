package suite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/test/recorder"
)

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
	// NotHere is why it was not tried.
	NotHere string
}

// Plan is what Chaos does.
type Plan struct {
	Trials []Trial
	Runs   int            // of each trial
	Before map[string]int // of these runs, those that were done before, by what the trial calls itself
	Gangs  int            // of each run, at least 4
	Seed   uint64         // of what is submitted
	Shared bool           // one installation for all trials
	// NATS is how many servers there are, 0 for one. Several are encrypted.
	NATS int
	// Done is called with the outcome of each trial; it may be nil.
	Done func(Outcome)
}

// batches is how many installations are tried for the runs of one fault: after a run
// that does not come to its end the next ones need another.
const batches = 3

// Chaos causes every fault plan.Runs times under load, each in an installation of its
// own unless all are to share one, and checks after its runs what must hold.
func Chaos(t *testing.T, p Provider, plan Plan) []Outcome {
	t.Logf("parts are %s", p.Name())
	var shared *world
	if plan.Shared {
		shared = chaosWorld(t, p, plan, 0, plan.Trials...)
	}
	var outcomes []Outcome
	for i, trial := range plan.Trials {
		before := plan.Before[trial.String()]
		if before >= plan.Runs {
			continue
		}
		outcome := Outcome{Trial: trial}
		for batch := 0; batch < batches && before+outcome.Runs < plan.Runs && outcome.NotHere == ""; batch++ {
			broken := len(outcome.Broken)
			whole := t.Run(strings.ReplaceAll(trial.String(), " ", "-"), func(t *testing.T) {
				w := shared
				if w == nil {
					w = chaosWorld(t, p, plan, uint64(batches*(plan.Runs*i+before)+batch), trial)
				}
				w.trials(t, &outcome, plan.Runs-before, plan.Gangs)
				for _, each := range outcome.Broken[broken:] {
					t.Error(each)
				}
			})
			if !whole && len(outcome.Broken) == broken && len(outcome.Recovered) == outcome.Runs {
				outcome.Broken = append(outcome.Broken, "not all came to its end")
			}
			if !whole && outcome.Runs == 0 { // the installation does not start
				break
			}
		}
		if plan.Done != nil {
			plan.Done(outcome)
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// chaosWorld starts an installation for a mixed load and the faults of trials, with a
// bystander.
func chaosWorld(t *testing.T, p Provider, plan Plan, stream uint64, trials ...Trial) *world {
	t.Helper()
	shape := Shape{NATS: max(1, plan.NATS), TLS: plan.NATS > 1, Mixed: true}
	for _, trial := range trials {
		shape = trial.shape(shape)
	}
	w := newWorld(t, p, shape)
	w.cluster = plan.NATS > 1
	w.random = rand.New(rand.NewPCG(plan.Seed, stream+2))
	w.record(t)
	if shape.Quota {
		if err := w.insist(w.ctx, func(ctx context.Context) error { return w.setQuota(ctx, nominalQuota) }); err != nil {
			t.Fatalf("apply the ClusterQueues: %v", err)
		}
	}
	return w
}

// trials are all runs of a fault, and what must hold after them.
func (w *world) trials(t *testing.T, outcome *Outcome, runs, gangs int) {
	t.Helper()
	first := w.run + 1
	for outcome.Runs < runs {
		if !w.trial(t, outcome, gangs) {
			break
		}
	}
	if outcome.Runs == 0 {
		return
	}
	w.until(t, "all gangs are at their end", func() bool { return w.unended(w.run) == 0 })
	w.until(t, "nothing is left in Kubernetes", func() bool { return w.checker.NothingLeft(w.ctx) })
	for run := first; run <= w.run; run++ {
		w.logLoad(t, run-first+1, run)
	}
	outcome.Broken = append(outcome.Broken, w.verify()...)
	if err := w.removeJobs(); err != nil { // no promise is broken by it
		t.Logf("remove the finished jobs: %v", err)
	}
}

// record has a bystander watch all pods.
func (w *world) record(t *testing.T) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.access.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType = runtime.ContentTypeProtobuf // of all pods, all the time
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if w.recorder, err = recorder.Start(w.ctx, client); err != nil {
		t.Fatal(err)
	}
}

// trial is one run of a fault; it reports whether there may be another one. The fault
// strikes when all gangs of the run before have come to their end: each run is back by
// itself, without help of the next fault.
func (w *world) trial(t *testing.T, outcome *Outcome, gangs int) bool {
	t.Helper()
	before, waited := w.run, time.Now()
	w.until(t, "most gangs of the run before are at their end", func() bool { return w.unended(before) <= gangs/10 })
	w.run++
	w.submitMany(t, gangs-gangs/3-1) // a backlog for the fault to fall into
	w.until(t, "the gangs of the run before are at their end, and others are dispatched", func() bool {
		if w.unended(w.run) <= gangs/10 { // they have ended beside the last one of the run before
			w.submitMany(t, gangs/3)
		}
		return w.unended(before) == 0 && w.dispatched() && (!w.cluster || w.replicated())
	})
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
	w.submitMany(t, gangs/3)
	if !outcome.Rival {
		w.last(t, outcome.Trial)
	}
	if err := mend(w.ctx); err != nil {
		outcome.Broken = append(outcome.Broken, fmt.Sprintf("the fault could not be ended: %v", err))
		return false
	}
	mended := time.Now()
	w.running(t, w.submitProbe(t))
	outcome.Recovered = append(outcome.Recovered, time.Since(mended))
	outcome.Gangs += w.gangsOf(w.run)
	t.Logf("run %d: %s until the fault, which took %s; recovered %s after it", outcome.Runs, began.Sub(waited).Round(time.Millisecond),
		mended.Sub(began).Round(time.Millisecond), outcome.Recovered[len(outcome.Recovered)-1].Round(time.Millisecond))
	return true
}
