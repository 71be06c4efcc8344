// Package failover simulates clusters that are cut off: the permission that dispatchers
// keep, and queue-manager's state, with clocks that differ and processes that pause. The rest
// of the world is played.
package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/dispatcher/simhooks"
)

// bug is planted into a run.
type bug string

const (
	none bug = ""
	// notObeyed: no process finds what is not renewed.
	notObeyed bug = "what is not renewed is not stopped"
	// slowClock: the clocks of dispatchers run slower than the bound allows.
	slowClock bug = "the clock is ignored"
	// staleReturn: a cluster that comes back keeps what it has, and asks on.
	staleReturn bug = "a cluster that comes back removes nothing"
	// unmarked: objects are created without the mark, and reported as marked.
	unmarked bug = "objects are created without the mark"
	// lostLease is no bug: the Lease that has the permission is deleted while its cluster is cut
	// off, and made again later.
	lostLease bug = "the Lease is deleted"
)

const (
	lasts   = 2 * time.Minute
	begins  = int64(1_700_000_000)
	runs    = 40 * time.Minute
	gangs   = 3
	atMost  = 10 * time.Second // that a write is on its way
	endsIn  = 15 * time.Second // of a pod: its grace, and its kubelet
	silence = 45 * time.Second
)

// world is three clusters under one queue-manager.
type world struct {
	bug      bug
	random   *rand.Rand
	at       time.Duration // true time
	state    *state.State
	ledger   *decisionlog.Replica
	epoch    int64
	leadAt   time.Duration // when the next leader begins; the last one is gone until then
	clusters []*cluster
	seq      uint64
	terms    int
	moves    int // of gangs, by queue-manager
	broken   string
}

// cluster has objects, pods and two processes of the dispatcher.
type cluster struct {
	w         *world
	name      string
	cutUntil  time.Duration
	lostUntil time.Duration // the Lease
	record    simhooks.PermissionRecord
	writes    int
	pods      []*pod // one of each object
	late      []late
	commands  map[workload.ID]*event.GangCommand // as queue-manager has sent them
	read      map[workload.ID]*event.GangCommand // as the holder has read them
	published map[string]report                  // the last value of each subject, as NATS has it
	granted   *event.PermissionGranted
	first     bool // the holder has to say that nothing is left, also where nothing needs the permission
	processes []*process
	holder    int
	epoch     int64
}

// report is what a part has published, and when NATS stored it.
type report struct {
	payload event.Payload
	stored  time.Time
}

// pod stands for an object with its pods.
type pod struct {
	id       workload.ID
	attempt  int
	marked   bool
	uid      int
	deleting bool
	gone     time.Duration // when it ends; zero while it is not being deleted
}

// late is a creation on its way.
type late struct {
	at  time.Duration
	pod pod
}

// process is a dispatcher with a clock of its own.
type process struct {
	c           *cluster
	drift       float64
	skew        time.Duration
	pausedUntil time.Duration
	began       time.Duration
	askAt       time.Duration
	keeper      *simhooks.Permission
}

func (p *process) Elapsed() time.Duration {
	return time.Duration(float64(p.c.w.passed()-p.began) * p.drift)
}

func (p *process) Wall() time.Time {
	return time.Unix(begins, 0).Add(p.c.w.passed() + p.skew).UTC()
}

// passed is the time on the clocks of dispatchers, but for their errors.
func (w *world) passed() time.Duration {
	if w.bug == slowClock {
		return w.at / 2
	}
	return w.at
}

func newWorld(seed uint64, planted bug) *world {
	w := &world{bug: planted, random: rand.New(rand.NewPCG(seed, 21)), ledger: decisionlog.NewReplica(0)}
	w.lead(state.Stored{MaxEvent: 1 << 20, Queues: []state.Queue{{
		Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO,
		Rules: workload.Rules{Life: workload.Life{ReadyDeadline: workload.Duration(24 * time.Hour)}, OnLostCluster: workload.FailOver},
	}}})
	for _, name := range []string{"a", "b", "c"} {
		c := &cluster{w: w, name: name, commands: map[workload.ID]*event.GangCommand{}, read: map[workload.ID]*event.GangCommand{}, published: map[string]report{}}
		for range 2 {
			c.processes = append(c.processes, c.start())
		}
		c.take(0)
		w.clusters = append(w.clusters, c)
	}
	return w
}

// lead begins a term on the ledger, which reads again what NATS has.
func (w *world) lead(settings state.Stored) {
	w.epoch++
	settings.NoCertificates = true
	w.state = w.ledger.State(decisionlog.Term{Epoch: w.epoch, Stored: settings, SilentAfter: silence})
	for _, c := range w.clusters {
		if g := c.granted; g != nil && g.For == 0 {
			w.state.RememberFailedOver([]state.FailedOver{{Cluster: c.name, Session: g.Session, At: w.now()}})
		}
		for _, subject := range slices.Sorted(maps.Keys(c.published)) {
			r := c.published[subject]
			w.read(r.payload, r.stored)
		}
	}
	w.state.BeginDecisions(w.now())
}

// led reports whether there is a leader.
func (w *world) led() bool { return w.at >= w.leadAt }

// publish gives a report to NATS, and to the leader.
func (c *cluster) publish(subject string, payload event.Payload) {
	c.published[subject] = report{payload, c.w.now()}
	if c.w.led() {
		c.w.read(payload, time.Time{})
	}
}

// read has the leader take a report in. It was stored before, or comes now.
func (w *world) read(payload event.Payload, stored time.Time) {
	w.state.HeardBefore(payload, stored, w.now())
	switch p := payload.(type) {
	case *event.NodeObserved:
		w.state.Node(p, w.now())
	case *event.PermissionAsked:
		w.state.PermissionAsked(p, w.now())
	case *event.GangStatus:
		w.state.Status(p, stored, w.now())
	}
}

// now is the time of queue-manager, whose clock is the true one: those of others differ.
func (w *world) now() time.Time { return time.Unix(begins, 0).Add(w.at).UTC() }

// start starts a process. Its clock drifts by at most 1 %, and its wall clock is wrong by at most 5 s.
func (c *cluster) start() *process {
	r := c.w.random
	p := &process{c: c, drift: 1 + (r.Float64()-0.5)*0.02, skew: time.Duration(r.Int64N(int64(10*time.Second))) - 5*time.Second, began: c.w.passed()}
	p.keeper = simhooks.NewPermission(stored{c}, p, lasts)
	return p
}

// take makes a process the holder of the Lease.
func (c *cluster) take(i int) {
	c.holder, c.epoch, c.first = i, c.epoch+1, true
	c.read = map[workload.ID]*event.GangCommand{} // read again
	c.processes[i].askAt = c.w.at
}

func (c *cluster) cut() bool { return c.w.at < c.cutUntil }

// lost reports whether the Lease is missing.
func (c *cluster) lost() bool { return c.w.at < c.lostUntil }

// stored is the API server.
type stored struct{ *cluster }

func (s stored) Permission(context.Context) (simhooks.PermissionRecord, error) {
	if s.lost() {
		return simhooks.PermissionRecord{Missing: true}, nil
	}
	return s.record, nil
}

func (s stored) SetPermission(_ context.Context, instead string, r simhooks.PermissionRecord) error {
	if s.lost() {
		return errors.New("there is no Lease")
	}
	if s.record.Text != instead {
		return simhooks.ErrPermissionChanged
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		return err
	}
	r.Text = string(encoded)
	s.record = r
	return nil
}

func (s stored) Permitted(context.Context) (all []simhooks.Held, err error) {
	if s.w.bug == staleReturn || s.w.bug == notObeyed {
		return nil, nil
	}
	for _, p := range s.pods {
		if p.marked {
			all = append(all, simhooks.Held{Kind: "RayCluster", Name: string(p.id), UID: fmt.Sprint(p.uid), Workload: p.id, Attempt: p.attempt, Deleting: p.deleting})
		}
	}
	return all, nil
}

func (s stored) Stop(_ context.Context, h simhooks.Held) error {
	for _, p := range s.pods {
		if fmt.Sprint(p.uid) == h.UID {
			s.remove(p)
		}
	}
	return nil
}

// remove has a pod end within its grace.
func (c *cluster) remove(p *pod) {
	if !p.deleting {
		p.deleting, p.gone = true, c.w.at+time.Duration(c.w.random.Int64N(int64(endsIn)))
	}
}

// live creates what comes now, and drops the pods that have ended.
func (c *cluster) live() {
	c.late = slices.DeleteFunc(c.late, func(l late) bool {
		if l.at > c.w.at {
			return false
		}
		if !slices.ContainsFunc(c.pods, func(p *pod) bool { return p.id == l.pod.id }) {
			c.pods = append(c.pods, &l.pod)
		}
		return true
	})
	c.pods = slices.DeleteFunc(c.pods, func(p *pod) bool { return p.deleting && p.gone <= c.w.at })
}

// step lets a second pass.
func (w *world) step() {
	w.at += time.Second
	if w.leadAt > 0 && w.at == w.leadAt {
		w.lead(w.state.Settings())
		w.terms++
	}
	w.strike()
	for _, c := range w.clusters {
		c.live()
		if h := c.processes[c.holder]; w.at < h.pausedUntil-8*time.Second && w.at >= c.processes[1-c.holder].pausedUntil {
			c.take(1 - c.holder)
		}
		if !c.cut() && w.at%(5*time.Second) == 0 {
			c.report()
		}
		for i, p := range c.processes {
			if w.at >= p.pausedUntil {
				p.act(i == c.holder)
			}
		}
	}
	if w.led() {
		w.state.Tick(w.now(), time.Minute)
		w.state.Decide(w.now())
		w.send()
	}
	w.check()
}

// strike takes the leader away for a while, cuts clusters off, pauses processes and restarts them;
// one process of each cluster runs, which is what a failover rests on.
func (w *world) strike() {
	if w.led() && w.random.IntN(300) == 0 && w.at < runs-10*time.Minute {
		w.leadAt = w.at + time.Second + time.Duration(w.random.Int64N(90))*time.Second
	}
	for _, c := range w.clusters {
		r := w.random
		if !c.cut() && r.IntN(400) == 0 && w.at < runs-10*time.Minute {
			c.cutUntil = w.at + time.Duration(r.Int64N(int64(9*time.Minute)))
		}
		if w.bug == lostLease && c.cut() && !c.lost() && r.IntN(60) == 0 {
			c.lostUntil, c.record = w.at+time.Duration(r.Int64N(int64(6*time.Minute))), simhooks.PermissionRecord{}
		}
		i := r.IntN(2)
		if p, other := c.processes[i], c.processes[1-i]; r.IntN(150) == 0 && w.at >= p.pausedUntil && w.at >= other.pausedUntil {
			if r.IntN(2) == 0 {
				p.pausedUntil = w.at + time.Duration(r.Int64N(int64(4*time.Minute)))
			} else {
				c.processes[i] = c.start()
				if c.holder == i {
					c.take(i)
				}
			}
		}
	}
}

// report is that of the watcher.
func (c *cluster) report() {
	for i := range 2 {
		c.w.seq++
		name := fmt.Sprintf("n%d", i)
		c.publish(event.NodeSubject(c.name, name), &event.NodeObserved{Version: event.Version{Session: 1, Seq: c.w.seq}, Node: capacity.Node{
			Cluster: c.name, Name: name, Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10},
		}})
	}
}

// send gives the messages of queue-manager to the streams.
func (w *world) send() {
	changes := w.state.Flush()
	w.ledger.Commit(changes)
	for _, m := range changes.Messages {
		for _, c := range w.clusters {
			switch p := m.Payload.(type) {
			case *event.GangCommand:
				if p.Cluster == c.name {
					c.commands[p.Workload] = p
				}
			case *event.PermissionGranted:
				if p.Cluster == c.name {
					c.granted = p
				}
			case *event.WorkloadChanged:
				if p.Reason != nil && p.Reason.Kind == workload.ReasonClusterLost && strings.Contains(p.Reason.Message, "permission") && c == w.clusters[0] && p.Phase == workload.Queued {
					w.moves++
				}
			}
		}
	}
}

// check fails when two incarnations of a gang run.
func (w *world) check() {
	run := map[workload.ID][]string{}
	for _, c := range w.clusters {
		for _, p := range c.pods {
			run[p.id] = append(run[p.id], fmt.Sprintf("attempt %d in %s", p.attempt, c.name))
		}
	}
	for id, where := range run {
		if len(where) > 1 && w.broken == "" {
			w.broken = fmt.Sprintf("after %s %s runs twice: %v", w.at, id, where)
		}
	}
}
