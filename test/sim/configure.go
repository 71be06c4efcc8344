package sim

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// operator changes the queue configuration: what it wants is asked of each leader
// until one has stored it.
type operator struct {
	w      *World
	wanted policy
	// changes that stand for a while, in the order in which they were made.
	changes []*rule
	count   int
}

// rule is a change of the policy.
type rule struct{ apply func(*policy) }

// change has a rule stand for a while, for ever without a time.
func (o *operator) change(base policy, r *rule, stands time.Duration) {
	again := func() {
		o.count++
		o.wanted = base.clone()
		for _, each := range o.changes {
			each.apply(&o.wanted)
		}
		o.wanted.revision = o.count
	}
	o.changes = append(o.changes, r)
	again()
	if stands == 0 {
		return
	}
	o.w.after(stands, func() {
		for i, each := range o.changes {
			if each == r {
				o.changes = append(o.changes[:i:i], o.changes[i+1:]...)
				break
			}
		}
		o.w.narrate("the configuration was changed for %s", stands)
		again()
	})
}

// strike changes the configuration as the fault draws it, and says how.
func (o *operator) strike(f TimedFault) string {
	if !o.w.ruled() {
		return ""
	}
	at := f.Pick / 64
	name := ruledQueues[at%uint64(len(ruledQueues))]
	at /= 16
	r, what, stands := &rule{}, "", f.For
	switch f.Pick % 6 {
	case 0:
		nominal := int64(at % 3)
		what = fmt.Sprintf("queue %s has nominal quota %d", name, nominal)
		r.apply = func(p *policy) { p.queue(name).nominal = nominal }
	case 1:
		stop := []string{quota.Hold, quota.HoldAndDrain}[at%2]
		what = fmt.Sprintf("queue %s has stopPolicy %s", name, stop)
		r.apply = func(p *policy) { p.queue(name).stop = stop }
	case 2, 3:
		cohort := []string{"all", "east", "apart", ""}[at%4]
		if at&4 != 0 {
			stands = 0
		}
		what = fmt.Sprintf("queue %s is in cohort %q", name, cohort)
		r.apply = func(p *policy) { p.queue(name).cohort = cohort }
	case 4:
		limit := int64(at % 3)
		what = fmt.Sprintf("queue %s borrows and lends at most %d", name, limit)
		r.apply = func(p *policy) { p.queue(name).borrow, p.queue(name).lend = limit, limit }
	default:
		halfLife := []int64{0, 5, 60}[at%3]
		what = fmt.Sprintf("fair sharing is turned, with a half-life of %d s", halfLife)
		r.apply = func(p *policy) { p.fair, p.halfLife = !p.fair, halfLife }
	}
	o.change(o.w.disk.first, r, stands)
	return what + " for " + stands.String()
}

// holdQueue holds a queue for a while: itself, or the ClusterQueue of the same name.
func (o *operator) holdQueue(f TimedFault) string {
	if !o.w.ruled() {
		return ""
	}
	name, kind := ruledQueues[f.Pick/64%uint64(len(ruledQueues))], []string{"queueHolds", "clusterQueueHolds"}[f.Pick%2]
	o.change(o.w.disk.first, &rule{apply: func(p *policy) { p.queue(name).held = kind }}, f.For)
	return fmt.Sprintf("queue %s, by %s, for %s", name, kind, f.For)
}

// configure brings the configuration to what the operator wants, as the engine does:
// what was decided before is written first, and whatever is decided next obeys it.
// It reports whether the term goes on.
func (t *term) configure(p *proc) bool {
	w := t.w
	if !w.ruled() || w.operator.wanted.revision <= w.disk.rules.revision || !w.reaches(t.m, natsServer) {
		return true
	}
	for len(t.decisions) > 0 {
		p.park(time.Second)
	}
	wanted, version := w.operator.wanted.clone(), t.step.State.Version()+1
	settings := state.Settings{Queues: w.disk.queues, Policy: wanted.config()}
	if w.call(postgresServer, "Configure", func() error { return w.disk.configure(t.epoch, version, wanted) }) != nil {
		return false
	}
	t.do(decisionlog.Input{Kind: decisionlog.Configure, Settings: &settings, Version: version})
	t.do(decisionlog.Input{Kind: decisionlog.CheckRights})
	return true
}

// configure stores a policy in a transaction of its own.
func (l *ledger) configure(epoch, version int64, p policy) error {
	err := l.fence(epoch)
	if err == nil && version != l.version+1 {
		err = fmt.Errorf("%w: version %d after %d", simhooks.ErrStale, version, l.version)
	}
	l.real.configured(epoch, version, p.config(), err)
	if err != nil {
		return err
	}
	l.version = version
	l.commits = append(l.commits, touched{version: version, settings: true, epoch: epoch, at: l.w.now})
	l.rule(p)
	l.w.narrate("the configuration is stored, version %d", version)
	return nil
}

// recordedTo is the version up to which all that was decided is recorded: that of the
// last record, or when only configurations came after it, of the last of them, for
// which a base is kept.
func (l *ledger) recordedTo() int64 {
	last := l.replayed.Version
	for _, c := range l.commits {
		if c.version == last+1 && c.settings {
			last++
		}
	}
	return last
}

// rule puts a policy in force. What is reserved is charged to the queue and the
// cohorts that it is in now.
func (l *ledger) rule(p policy) {
	l.rules, l.policy, l.bounds = p, p.config(), p.bounds()
	l.forgetPastUsage(l.policy)
	for id, holds := range l.holds {
		for i, h := range holds {
			if h.charges != nil && l.w.Bug != BugOldCohort {
				holds[i].charges = &state.Charges{Scopes: p.scopes(l.live[id].Queue), Flavors: h.charges.Flavors}
			}
		}
	}
}
