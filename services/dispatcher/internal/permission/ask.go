package permission

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Ask returns the next question of a session: for as long as what is stored lasts, at least. It
// returns ErrStopping while something is there that may not be kept, and nil where nothing needs
// the permission, and nothing did. first has a question asked there, too: it means that nothing is
// left of what was there. Its answer permits nothing.
func (k *Keeper) Ask(ctx context.Context, cluster string, session int64, needed, first bool) (*event.PermissionAsked, error) {
	stored, over, err := k.judge(ctx)
	if err != nil {
		return nil, err
	}
	unused := !needed && stored.Text == ""
	switch {
	case unused && !first:
		return nil, nil
	case over && !k.clean(stored):
		return nil, ErrStopping
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != session {
		k.session, k.asked = session, map[int64]question{}
	}
	wall, now := k.clock.Wall(), k.clock.Elapsed()
	for number, q := range k.asked {
		if now-q.at > q.lasts {
			delete(k.asked, number)
		}
	}
	lasts := min(max(k.lasts, stored.Until.Sub(wall), time.Duration(stored.For)), event.PermissionMost)
	if stored.Until.IsZero() {
		lasts = k.lasts
	}
	k.number++
	if !unused {
		k.asked[k.number] = question{now, wall, lasts}
	}
	return &event.PermissionAsked{Cluster: cluster, Session: session, Number: k.number, For: workload.Duration(lasts)}, nil
}

// Granted applies an answer, and reports whether it is one to a question of this process.
func (k *Keeper) Granted(g *event.PermissionGranted) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	q, known := k.asked[g.Number]
	if !known || g.Session != k.session {
		return false
	}
	delete(k.asked, g.Number)
	lasts := min(k.lasts, q.lasts, time.Duration(g.For))
	if ends := q.at + lasts; ends > k.granted.ends {
		k.granted = answer{ends, q.wall.Add(lasts)}
	}
	return true
}

// Store stores what was granted, and from then on it counts. It returns ErrStopping when what is
// stored has ended, until Look has begun the deletion of everything that needs it. keep says
// which stopped attempts are still commanded, and so have to be reported.
func (k *Keeper) Store(ctx context.Context, keep func(workload.ID, int) bool) error {
	if !k.Waits() {
		return nil
	}
	stored, over, err := k.judge(ctx)
	switch {
	case err != nil:
		return err
	case over && !k.clean(stored):
		return ErrStopping
	case stored.Session > k.asksAs():
		return fmt.Errorf("%w: it is that of session %d, later than %d", ErrChanged, stored.Session, k.asksAs())
	}
	k.turn.Lock()
	defer k.turn.Unlock()
	return k.replace(ctx, stored, keep)
}

// replace stores what was granted in place of what is stored. The wall clock is read first: a
// process that pauses in between stores an end that is too early, never too late.
func (k *Keeper) replace(ctx context.Context, stored Record, keep func(workload.ID, int) bool) error {
	k.mu.Lock()
	granted, session := k.granted, k.session
	wall, now := k.clock.Wall(), k.clock.Elapsed()
	k.mu.Unlock()
	// A machine that was suspended since the question may show it by one of its clocks only.
	left := min(granted.ends-now, granted.wall.Sub(wall))
	if left <= 0 {
		k.dropAnswer(granted)
		return nil // the answer came too late
	}
	next := Record{Until: wall.Add(left).UTC().Round(0), For: workload.Duration(left), Session: session}
	next.Stopped = slices.DeleteFunc(slices.Clone(stored.Stopped), func(one string) bool {
		id, attempt := parse(one)
		return !keep(id, attempt)
	})
	next.Overflowed = stored.Overflowed && len(next.Stopped) > 0
	if err := k.write(ctx, stored.Text, next); err != nil {
		return err
	}
	k.dropAnswer(granted)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends, k.stored = now+left, true
	k.latest = max(k.latest, session)
	k.see(seen{until: next.Until, at: now, stored: true})
	return nil
}

// dropAnswer has an answer wait no longer, unless a later one does.
func (k *Keeper) dropAnswer(granted answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.granted == granted {
		k.granted = answer{}
	}
}

func (k *Keeper) asksAs() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session
}
