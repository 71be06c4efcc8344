package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/kube/lease/rules"
)

// leaseDuration is that of the services' Leases by default.
const leaseDuration = rules.DefaultDuration

// election takes a Lease for one term and keeps it, as that of package lease does, and by the same
// rules (pkg/kube/lease/rules). Its requests are played, and its loops are coroutines.
type election struct {
	w              *World
	m              *machine
	life           int
	name, identity string // identity is of this term alone
	epoch          int64
	lease          *coordination.Lease // as it was confirmed last
	// sent is when the last write was sent that was confirmed. A process that stands still ages, too.
	sent    time.Time
	holds   bool
	writing bool // renewals and the epoch are written one after the other
}

// hold waits until the machine has the lease and an epoch, and renews it; act begins the work.
func (m *machine) hold(name string, p *proc, atLeast func() (int64, error), act func(*election)) {
	e := &election{w: m.w, m: m, life: m.life, name: name, identity: fmt.Sprintf("%s/%d", m.name, m.life)}
	e.acquire(p)
	e.w.cluster.elections = append(slices.DeleteFunc(e.w.cluster.elections, func(o *election) bool { return !o.current() }), e)
	m.spawn("keeper", e.keep)
	if e.takeEpoch(p, atLeast) {
		m.w.narrate("%s acts, epoch %d", m.name, e.epoch)
		act(e)
	}
}

func (e *election) current() bool { return e.life == e.m.life && !e.m.dead }

func (e *election) held() time.Duration { return e.w.now.Sub(e.sent) }

// may reports whether the term may act, by what the machine itself knows.
func (e *election) may() bool { return e.holds && rules.Times{Duration: leaseDuration}.Acts(e.held()) }

// check returns an error unless the term may act now, as lease.Guard does.
func (e *election) check() error {
	if !e.may() {
		return lease.ErrLost
	}
	for _, other := range e.w.cluster.elections {
		if other != e && other.name == e.name && other.current() && other.may() {
			e.w.breach("G4", "%s and %s act under one Lease", e.identity, other.identity)
		}
	}
	return nil
}

// acquire waits until this term has the Lease.
func (e *election) acquire(p *proc) {
	s := &rules.Standby{Times: rules.Times{Duration: leaseDuration}, Identity: e.identity, Ended: e.m.ended}
	for {
		taken, err := e.look(s)
		switch {
		case taken:
			return
		case isConflict(err):
			p.sleep(s.Retry())
		case err != nil:
			s.Failed()
			p.sleep(s.Every())
		default:
			e.watch(p, s)
		}
	}
}

// look reads the Lease, and takes it if it is free.
func (e *election) look(s *rules.Standby) (taken bool, err error) {
	began := e.w.now
	found, err := e.read(leaseDuration)
	if isNotFound(err) {
		err = e.update("elect", leaseDuration, &coordination.Lease{ObjectMeta: named(e.name)}, func(*coordination.Lease) {})
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	s.Read(found, began, e.w.now)
	free := s.FreeAt()
	if e.w.Bug == BugHasty {
		free = free.Add(-leaseDuration / 2)
	}
	if e.w.now.Before(free) {
		return false, nil
	}
	err = e.update("elect", leaseDuration, found, func(*coordination.Lease) {})
	return err == nil, err
}

// takeEpoch writes the next epoch into the Lease. It reports false when the lease is lost.
func (e *election) takeEpoch(p *proc, atLeast func() (int64, error)) bool {
	for after := rules.EpochRetry; ; after = min(2*after, rules.EpochRetryMost) {
		known, err := atLeast()
		if err == nil {
			err = e.write("take an epoch", unbounded, func(l *coordination.Lease) {
				last, _ := strconv.ParseInt(l.Annotations[rules.EpochKey], 10, 64) // 0 if it is missing
				e.epoch = rules.NextEpoch(e.m.now(), last, known)
				l.Annotations = map[string]string{rules.EpochKey: strconv.FormatInt(e.epoch, 10)}
			})
		}
		switch {
		case err == nil:
			return true
		case errors.Is(err, lease.ErrLost):
			e.end(0)
			return false
		}
		p.sleep(after)
	}
}

// keep renews the Lease until another process may have it.
func (e *election) keep(p *proc) {
	holder := rules.NewHolder(rules.Times{Duration: leaseDuration}, e.w.now)
	after := holder.Every()
	for {
		p.sleep(after)
		within, bounded := holder.Within()
		if !bounded {
			within = unbounded
		}
		err := e.write("renew", within, func(*coordination.Lease) {})
		var next rules.Next
		switch {
		case err == nil:
			next = holder.Renewed(e.w.now, e.held())
		case errors.Is(err, lease.ErrLost):
			next.Lost = true
		case e.w.Bug == BugLeaseEnds:
			e.m.away = e.w.now.Add(24 * time.Hour)
			e.m.crash()
			return
		default:
			next = holder.Failed(e.held())
		}
		if next.Lost {
			e.w.narrate("%s has lost its lease", e.m.name)
			e.end(0)
			return
		}
		if next.Stops {
			e.w.check.made[madeLapsed]++
		}
		if next.Resumes {
			e.w.check.made[madeResumes]++
		}
		after = next.After
	}
}

// end ends the term, as lease.Run does: first the work, then the lease is released. The process
// begins another term after a pause, with new memory.
func (e *election) end(pause time.Duration) {
	m, w := e.m, e.w
	if !e.current() {
		return
	}
	w.narrate("%s ends its term", m.name)
	e.holds, m.dead, m.ended = false, true, e.identity
	w.after(0, m.stop)
	w.after(w.latency(), e.release)
	w.after(pause+w.latency(), m.start)
}
