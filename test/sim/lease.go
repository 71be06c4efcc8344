package sim

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/kube/lease"
)

// leaseObject is a Lease of the cluster.
type leaseObject struct {
	holder  string
	renewed int   // counts the writes, as a resource version does
	epoch   int64 // in its annotation
}

// Times of a lease. Those of package lease are shorter by default, and its terms outlive a lapse;
// those here end with it.
const (
	leaseDuration = 8 * time.Second
	leaseRenewal  = leaseDuration / 6
	leaseDeadline = leaseDuration * 3 / 4
	leaseMargin   = time.Second
)

// held is a machine's term under a lease.
type held struct {
	w     *World
	epoch int64
	sure  time.Time // when it was last known to be held; a process that stands still ages, too
}

// check reports whether the lease is held, by what the machine itself knows.
func (h *held) check() error {
	if h.w.now.Sub(h.sure) > leaseDuration-leaseMargin {
		return lease.ErrLost
	}
	return nil
}

// hold waits until the machine has the lease and keeps it; act begins the work. A
// machine that loses its lease starts again, because all memory is of one term.
func (m *machine) hold(name string, p *proc, atLeast func() (int64, error), act func(*held)) {
	w := m.w
	identity := fmt.Sprintf("%s/%d", m.name, m.life)
	h := m.elect(name, identity, p)
	known, err := atLeast()
	if err == nil {
		err = w.call(apiServer, "take an epoch", func() error {
			l := w.cluster.leases[name]
			if l.holder != identity {
				return lease.ErrLost
			}
			l.epoch = max(m.now().UnixNano(), l.epoch+1, known+1)
			l.renewed++
			h.epoch = l.epoch
			return nil
		})
	}
	if err != nil {
		m.crash()
		return
	}
	w.narrate("%s acts, epoch %d", m.name, h.epoch)
	act(h)
	for w.now.Sub(h.sure) <= leaseDeadline {
		p.sleep(leaseRenewal)
		err := w.call(apiServer, "renew", func() error {
			l := w.cluster.leases[name]
			if l.holder != identity {
				return lease.ErrLost
			}
			l.renewed++
			return nil
		})
		switch {
		case err == nil:
			h.sure = w.now
		case w.Bug == BugLeaseEnds:
			m.away = w.now.Add(24 * time.Hour)
			m.crash()
			return
		}
	}
	w.narrate("%s has lost its lease", m.name)
	m.crash()
}

// elect takes the lease when it is free, or its holder has shown no life for so
// long as this machine looks.
func (m *machine) elect(name, identity string, p *proc) *held {
	w := m.w
	var seen leaseObject
	since := w.now
	for {
		var won bool
		err := w.call(apiServer, "elect", func() error {
			l := w.cluster.leases[name]
			if l == nil {
				l = &leaseObject{}
				w.cluster.leases[name] = l
			}
			if l.holder != "" && l.holder != identity && (*l != seen || w.now.Sub(since) < leaseDuration) {
				if *l != seen {
					seen, since = *l, w.now
				}
				return nil
			}
			l.holder, won = identity, true
			l.renewed++
			return nil
		})
		if won && err == nil {
			return &held{w: w, sure: w.now}
		}
		p.sleep(leaseRenewal)
	}
}
