package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// unadmittedFor is how long after a restore something may run that the restored
// database has not admitted.
const unadmittedFor = 60 * time.Second

// readEvery is how often an operator reads what is named.
const readEvery = 3 * time.Second

// OlderPlan is what RestoreOlderState does.
type OlderPlan struct {
	Runs   int
	Before int    // how many runs were done before these
	Gangs  int    // of each run, at least 8
	Seed   uint64 // of what is submitted
	// Purged: of every Purged runs the second one loses what NATS keeps of
	// submissions, too; 0 for none.
	Purged int
	// Done is called with what came of each run; it may be nil.
	Done func(Restored)
}

// Restored is what came of one restore.
type Restored struct {
	Gangs  int  `json:"gangs"`
	Purged bool `json:"purged,omitempty"` // of what NATS keeps of submissions
	// Lost are the gangs that the database had taken in after the backup, of which
	// Named were named to the operator because they cannot be queued again.
	Lost  int `json:"lost"`
	Named int `json:"named"`
	// Unadmitted is how many pods and RayClusters ran unadmitted after
	// unadmittedFor; Cleared is when the last one of them was gone.
	Unadmitted int           `json:"unadmitted,omitempty"`
	Cleared    time.Duration `json:"cleared"`
	// Recovered is when a gang ran that was submitted after the restore.
	Recovered time.Duration `json:"recovered"`
	Broken    []string      `json:"broken,omitempty"`
}

// RestoreOlderState restores Postgres from a physical backup of a while ago, under
// load, while services, NATS and the cluster go on. What was submitted in the lost
// time comes to its end or is named; what was admitted in it is removed.
func RestoreOlderState(t *testing.T, p Provider, plan OlderPlan) (all []Restored) {
	t.Logf("parts are %s", p.Name())
	w := newWorld(t, p, Shape{NATS: 1})
	w.random = rand.New(rand.NewPCG(plan.Seed, 2))
	w.record(t)
	for run := plan.Before; run < plan.Before+plan.Runs; run++ {
		r := &restore{world: w, Restored: Restored{Purged: plan.Purged > 0 && run%plan.Purged == 1}}
		whole := t.Run(fmt.Sprintf("run %d", run+1), func(t *testing.T) {
			r.run(t, plan.Gangs)
			for _, each := range r.Broken {
				t.Error(each)
			}
		})
		if !whole && len(r.Broken) == 0 {
			r.Broken = []string{"it did not come to its end"}
		}
		all = append(all, r.Restored)
		if plan.Done != nil {
			plan.Done(r.Restored)
		}
		if t.Failed() {
			break // what is left of it would spoil the next one
		}
	}
	return all
}

// restore is one run.
type restore struct {
	*world
	Restored
	ids  []workload.ID
	lost []workload.ID // of ids
}

func (r *restore) run(t *testing.T, gangs int) {
	t.Helper()
	r.submitSome(t, gangs*3/8)
	r.anyDispatched(t, r.ids)
	goBack, err := r.Break(r.ctx, Postgres, Older)
	if err != nil {
		t.Fatalf("back up Postgres: %v", err)
	}
	backedUp, err := r.checker.Stored(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	r.loseTime(t, gangs*3/8, backedUp)
	if err := goBack(r.ctx); err != nil {
		t.Fatalf("restore Postgres: %v", err)
	}
	began := time.Now()
	watching, stop := context.WithCancel(r.ctx)
	var watch sync.WaitGroup
	watch.Go(func() { r.watchUnadmitted(watching, began) })
	defer func() { stop(); watch.Wait() }()

	r.submitSome(t, gangs/4)
	probe := r.submit(t)
	r.ids = append(r.ids, probe)
	r.running(t, probe)
	r.Recovered = time.Since(began)
	named := map[workload.ID]bool{}
	var read time.Time
	r.until(t, "all gangs are at their end", func() bool {
		if time.Since(read) > readEvery {
			r.resubmitNamed(t, named)
			read = time.Now()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return !slices.ContainsFunc(r.ids, func(id workload.ID) bool { return !r.gangOf(id).phase.Final() })
	})
	r.until(t, "nothing is left in Kubernetes", func() bool { return r.checker.NothingLeft(r.ctx) })
	stop()
	watch.Wait()
	r.Gangs, r.Lost, r.Named = len(r.ids), len(r.lost), len(named)
	r.Broken = append(r.Broken, r.verify()...)
	t.Logf("%d gangs, %d lost, %d of them named; recovered after %s, nothing unadmitted after %s", r.Gangs, r.Lost, r.Named,
		r.Recovered.Round(time.Millisecond), r.Cleared.Round(time.Millisecond))
}

// submitSome submits gangs of several kinds.
func (r *restore) submitSome(t *testing.T, count int) {
	t.Helper()
	for range count {
		r.ids = append(r.ids, r.submitAs(t, []kind{plain, plain, large, job}[r.random.IntN(4)], "default"))
	}
}

// loseTime does what the restored database will not know: submissions are reported to be
// queued, objects are created, and gangs end.
func (r *restore) loseTime(t *testing.T, count int, backedUp map[string]bool) {
	t.Helper()
	from := len(r.ids)
	r.submitSome(t, count)
	r.anyDispatched(t, r.ids[from:])
	r.until(t, "one of them ends, and all are known", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		ended := slices.ContainsFunc(r.ids[from:], func(id workload.ID) bool { return r.gangOf(id).phase.Final() })
		return ended && !slices.ContainsFunc(r.ids, func(id workload.ID) bool { return r.gangOf(id).phase == "" })
	})
	if r.Purged {
		if _, err := r.Break(r.ctx, NATS(1), KeptPurged); err != nil {
			t.Fatalf("purge what is kept of submissions: %v", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.ids {
		r.gangOf(id).older = true
		if !backedUp[string(id)] {
			r.lost = append(r.lost, id)
		}
	}
}

// watchUnadmitted looks all the time at what runs unadmitted.
func (r *restore) watchUnadmitted(ctx context.Context, began time.Time) {
	var before []string
	for judged := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		now, err := r.checker.Unadmitted(ctx)
		if err != nil {
			continue // Postgres starts
		}
		// What is seen once may have been let go between the looks.
		stays := slices.DeleteFunc(slices.Clone(now), func(each string) bool { return !slices.Contains(before, each) })
		before = now
		passed := time.Since(began)
		if len(stays) > 0 {
			r.Cleared = passed
		}
		if passed > unadmittedFor && !judged {
			judged, r.Unadmitted = true, len(stays)
		}
		if passed > unadmittedFor && len(stays) > 0 {
			r.Broken = append(r.Broken, fmt.Sprintf("%s after the restore there run unadmitted: %s", passed.Round(time.Second), strings.Join(stays, ", ")))
		}
	}
}

// resubmitNamed does what operator and submitter do with what the dead-letter stream
// names: what is lost is submitted again, and what had ended is let be.
func (r *restore) resubmitNamed(t *testing.T, named map[workload.ID]bool) {
	t.Helper()
	dead, err := r.bus.DeadLetters(r.ctx)
	if err != nil {
		t.Logf("list what is named: %v", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, each := range dead {
		var message struct {
			Data struct {
				ID    workload.ID    `json:"id"`
				Phase workload.Phase `json:"phase"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(each.Message), &message) != nil || named[message.Data.ID] || !slices.Contains(r.lost, message.Data.ID) {
			continue
		}
		id := message.Data.ID
		named[id] = true
		switch g := r.gangOf(id); {
		case strings.Contains(each.Reason, "has no record of"):
			g.ended, g.phase = true, message.Data.Phase
		case strings.Contains(each.Reason, "submit it again"):
			g.phase, g.tried = "", time.Time{}
			if !r.Purged {
				r.breach("gang %s is lost, although NATS keeps its submission", g.name)
			}
		}
	}
}
