package lease

import "sync/atomic"

// Guard reports whether the lease is held now, by the clock of this machine, which runs
// on while the process is paused.
type Guard struct {
	term atomic.Pointer[election]
}

// Check returns an error that wraps ErrLost unless the lease is held. A term whose lease has
// lapsed may hold it again.
func (g *Guard) Check() error {
	term := g.term.Load()
	if term == nil {
		return ErrLost
	}
	return term.check()
}
