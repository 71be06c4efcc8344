package settings

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// makeRoom removes reservations that are over where the change makes another one: their number is
// bounded, and few people delete them. Those of the file are for its author to delete. The answer does
// not list what goes, because the request is not about it: what it names stays.
func (f File) makeRoom(p *Plan, named map[kueue.Key]bool, now time.Time) {
	written := map[kueue.Key]bool{}
	for _, w := range p.Written {
		if w.Kind == kueue.Reservation {
			written[w.Key] = true
		}
	}
	if len(written) == 0 {
		return
	}
	var applied []quota.Reservation
	stay := len(written) + len(f.Policy.Reservations)
	for key, a := range p.Set {
		switch {
		case key.Kind != kueue.Reservation || written[key] || a.Unread != nil:
		case named[key]:
			stay += len(a.Policy.Reservations)
		default:
			applied = append(applied, a.Policy.Reservations...)
		}
	}
	for _, name := range quota.Outdated(applied, stay, now) {
		key := kueue.Key{Kind: kueue.Reservation, Name: name}
		delete(p.Set, key)
		p.Removed = append(p.Removed, key)
	}
}
