package failover

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

var seeds = flag.Uint64("failovers", 20, "number of runs")

// act is a second of a process: it obeys the permission, and the holder of the Lease does
// what a dispatcher does, as far as the link to queue-manager stands.
func (p *process) act(holds bool) {
	ctx, c := context.Background(), p.c
	_ = p.keeper.Look(ctx) // another process may be before it
	if !holds {
		return
	}
	if c.cut() {
		c.first = true // it has to connect again
	} else {
		maps.Copy(c.read, c.commands)
		if g := c.granted; g != nil {
			c.granted = nil
			p.keeper.Granted(g)
		}
		if c.w.at >= p.askAt {
			if asked, err := p.keeper.Ask(ctx, c.name, c.epoch, c.needs(), c.first); err == nil && asked != nil {
				p.askAt, c.first = c.w.at+p.keeper.Every(), false
				c.publish(event.PermissionAskedSubject(c.name), asked)
			}
		}
	}
	_ = p.keeper.Store(ctx, func(id workload.ID, attempt int) bool { // tried again each second
		command := c.read[id]
		return command != nil && command.State == event.Present && command.Attempt == attempt
	})
	if c.lost() {
		return // no dispatcher acts without the Lease
	}
	for _, id := range slices.Sorted(maps.Keys(c.read)) {
		p.reconcile(ctx, c.read[id])
	}
}

// needs reports whether a command demands the permission.
func (c *cluster) needs() bool {
	for _, command := range c.read {
		if command.State == event.Present && command.Permitted {
			return true
		}
	}
	return false
}

// reconcile plays the reconciler.
func (p *process) reconcile(ctx context.Context, command *event.GangCommand) {
	c := p.c
	status := &event.GangStatus{Workload: command.Workload, Cluster: c.name, Attempt: command.Attempt, Session: c.epoch}
	i := slices.IndexFunc(c.pods, func(o *pod) bool { return o.id == command.Workload })
	switch {
	case command.State == event.Forgotten:
		return
	case command.State != event.Present:
		if i >= 0 && c.w.bug != staleReturn {
			c.remove(c.pods[i])
		}
		status.Created, status.Gone, status.Released = true, i < 0, i < 0
	case !p.keeper.Valid():
		return
	case i >= 0 && c.pods[i].attempt != command.Attempt:
		c.remove(c.pods[i])
		return
	case i >= 0:
		status.Created, status.Permitted = true, c.pods[i].marked || c.w.bug == unmarked
	case command.Created || p.stopped(ctx, command):
		stopped := p.stopped(ctx, command)
		status.Created, status.Gone, status.Stopped, status.Released = true, true, stopped, true
	case !slices.ContainsFunc(c.late, func(l late) bool { return l.pod.id == command.Workload }):
		c.writes++
		c.late = append(c.late, late{c.w.at + time.Duration(c.w.random.Int64N(int64(atMost))), pod{
			id: command.Workload, attempt: command.Attempt, uid: c.writes, marked: c.w.bug != unmarked,
		}})
		return
	default:
		return
	}
	if !c.cut() {
		c.publish(event.StatusSubject(c.name, status.Workload), status)
	}
}

func (p *process) stopped(ctx context.Context, command *event.GangCommand) bool {
	stopped, err := p.keeper.WasStopped(ctx, command.Workload, command.Attempt)
	return err == nil && stopped
}

// run plays a seed to its end and returns what it broke.
func run(seed uint64, planted bug) *world {
	w := newWorld(seed, planted)
	for i := range gangs {
		w.state.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: workload.ID(fmt.Sprintf("w%d", i)), Queue: "q", Kind: workload.KindRayCluster, Name: fmt.Sprintf("w%d", i),
			PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 2, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
		}}, nil, w.now())
	}
	w.send()
	for w.at < runs && w.broken == "" {
		w.step()
	}
	return w
}

// No gang runs twice, whatever is cut off, for how long, and how the clocks differ; gangs
// do move; and in the end all run.
func TestNoGangRunsTwice(t *testing.T) {
	t.Parallel()
	moves, terms := 0, 0
	for seed := range *seeds {
		w := run(seed, none)
		if w.broken != "" {
			t.Fatalf("seed %d: %s", seed, w.broken)
		}
		moves, terms = moves+w.moves, terms+w.terms
		running := 0
		for _, c := range w.clusters {
			running += len(c.pods)
		}
		if running != gangs {
			t.Fatalf("seed %d: %d gangs run in the end, want %d", seed, running, gangs)
		}
	}
	t.Logf("seeds: %d, gangs moved: %d, changes of the leader: %d", *seeds, moves, terms)
	if moves < int(*seeds)/10 || terms < int(*seeds) {
		t.Errorf("%d gangs moved and the leader changed %d times in %d seeds: nothing was tested", moves, terms, *seeds)
	}
}

// Nor does one when the Lease is deleted that has the permission. What is noted there may be lost
// with it, so gangs may count as deleted in the end.
func TestNoGangRunsTwiceWithoutItsLease(t *testing.T) {
	t.Parallel()
	moves := 0
	for seed := range *seeds {
		w := run(seed, lostLease)
		if w.broken != "" {
			t.Fatalf("seed %d: %s", seed, w.broken)
		}
		moves += w.moves
	}
	if moves < int(*seeds)/10 {
		t.Errorf("%d gangs moved in %d seeds: nothing was tested", moves, *seeds)
	}
}

// Each planted bug is found by chance.
func TestPlantedBugsOfFailoverAreFound(t *testing.T) {
	t.Parallel()
	for _, planted := range []bug{notObeyed, slowClock, staleReturn, unmarked} {
		t.Run(string(planted), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(100) {
				if w := run(seed, planted); w.broken != "" {
					t.Logf("seed %d: %s", seed, w.broken)
					return
				}
			}
			t.Error("no seed of 100 has found it")
		})
	}
}
