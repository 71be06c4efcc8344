package sim

import (
	"time"

	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/kube/lease/rules"
)

// leaseWatch is a standby's watch of a Lease.
type leaseWatch struct {
	e     *election
	p     *proc
	shown []*coordination.Lease
	over  bool
}

// watch follows the Lease from where it was read, until it is to be read again.
func (e *election) watch(p *proc, s *rules.Standby) {
	w := e.w
	if !w.reaches(e.m, apiServer) {
		p.sleep(s.Every())
		return
	}
	i := &leaseWatch{e: e, p: p}
	w.cluster.leaseWatches = append(w.cluster.leaseWatches, i)
	defer func() { i.over = true }()
	if now := w.cluster.leases[e.name]; now != nil && now.ResourceVersion != s.Lease.ResourceVersion {
		i.offer(now)
	}
	for until := s.LookAt(w.now); w.now.Before(until); {
		p.park(until.Sub(w.now))
		shown := i.shown
		i.shown = nil
		for _, l := range shown {
			s.Watched(l, w.now)
			if s.FreeAt().IsZero() {
				return
			}
			until = s.LookAt(w.now)
		}
	}
}

// offer shows a Lease to the standby, late now and then. A watch that breaks shows nothing more.
func (i *leaseWatch) offer(l *coordination.Lease) {
	w, m := i.e.w, i.e.m
	if i.over || !w.reaches(m, apiServer) {
		i.over = true
		return
	}
	if w.nemesis.draw(m.name+" watches its lease", LostMessage) != "" {
		i.over = true
		return
	}
	if w.random.IntN(20) == 0 {
		w.net.hold(m.name+"<lease", w.between(50*time.Millisecond, 2*time.Second))
	}
	w.after(w.net.arrives(m.name+"<lease"), func() {
		if !i.over && i.e.current() {
			i.shown = append(i.shown, l)
			i.p.wake()
		}
	})
}

// callWithin has a server do something, as call does. The caller gives up after a while; what it
// has asked for may be done later.
func (w *World) callWithin(most time.Duration, server, op string, effect func() error) error {
	p, until, err, answered, gone := w.cur, w.now.Add(most), errLost, false, false
	p.m.spawn("request", func(*proc) {
		answer := w.call(server, op, effect)
		if err, answered = answer, true; !gone {
			p.wake()
		}
	})
	for !answered && w.now.Before(until) {
		p.park(until.Sub(w.now))
	}
	gone = true
	if !answered {
		return errLost
	}
	return err
}
