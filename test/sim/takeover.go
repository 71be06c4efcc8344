package sim

import (
	"muster.dev/muster/pkg/state"
	queuemanager "muster.dev/muster/services/queue-manager/simhooks"
)

// standBy follows the leader until there is none, and takes an epoch.
func (t *term) standBy(p *proc) (followed *state.State, ok bool) {
	w, before := t.w, int64(0)
	for {
		if !w.reaches(t.m, natsServer) {
			p.sleep(standbyEvery)
			continue
		}
		err := w.call(postgresServer, "lead", func() error {
			before, t.epoch, t.session = w.disk.lock(t.m)
			return nil
		})
		if t.epoch > 0 && err == nil {
			t.m.memory.StartTerm(before, t.epoch)
			return followed, true
		}
		if err != nil {
			w.disk.unlock(t.session) // the connection is lost, and the lock with it
			return nil, false
		}
		if followed == nil {
			followed = t.load(0)
		} else if t.follow(followed) != nil {
			followed = nil
		}
		p.sleep(standbyEvery)
	}
}

// load reads everything into a state; nil when that fails.
func (t *term) load(epoch int64) (loaded *state.State) {
	err := t.w.call(postgresServer, "load", func() error {
		loaded, t.era, t.followed = state.New(epoch, t.w.disk.load()), t.w.disk.era, t.w.disk.epochOf(t.w.disk.version)
		return nil
	})
	if err != nil {
		return nil
	}
	return loaded
}

func (t *term) follow(s *state.State) error {
	var delta state.Delta
	era, last := t.era, t.followed
	err := t.w.call(postgresServer, "follow", func() error {
		if t.w.disk.epochOf(s.Version()) != t.followed {
			return queuemanager.ErrCommitMissing
		}
		delta, era, last = t.w.disk.since(s.Version()), t.w.disk.era, t.w.disk.epochOf(t.w.disk.version)
		return nil
	})
	if err != nil {
		return err
	}
	if t.era, t.followed = era, last; delta.Version != s.Version() {
		s.Follow(delta)
	}
	return nil
}

// takeOver makes the followed state the term's, or loads one.
func (t *term) takeOver(followed *state.State) *state.State {
	if followed == nil || t.follow(followed) != nil {
		return t.load(t.epoch)
	}
	followed.Follow(state.Delta{Version: followed.Version(), LastOrder: t.w.disk.lastOrder, PastUsage: t.w.disk.pastUsage(), Learned: t.w.disk.allLearned()})
	followed.Lead(t.epoch, 1<<20)
	return followed
}
