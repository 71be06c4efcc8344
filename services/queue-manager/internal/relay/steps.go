package relay

import "context"

// Steps does by hand, one thing at a time and without goroutines, what Run does:
// for a simulation, which decides when.
type Steps struct{ relay *Relay }

// Steps begins as Run does, without publishing yet.
func (r *Relay) Steps(ctx context.Context) (Steps, error) { return Steps{r}, r.begin(ctx) }

// Publishers is how many publishers there are. Each has steps of its own, which must not
// overlap.
func (s Steps) Publishers() int { return len(s.relay.publishers()) }

// Begin finds out where the publisher's stream ends and sends what earlier terms left.
func (s Steps) Begin(ctx context.Context, publisher int) error {
	return s.relay.publishers()[publisher].begin(ctx)
}

// Next does what is due in a publisher, a comparison before anything else, and reports
// whether there was anything.
func (s Steps) Next(ctx context.Context, publisher int) (bool, error) {
	p := s.relay.publishers()[publisher]
	var err error
	select {
	case <-p.checks:
		err = p.compare(ctx)
	default:
		select {
		case messages := <-p.handed:
			err = p.send(ctx, p.unsent(p.more(messages)))
		default:
			if !p.behind.Load() {
				return false, nil
			}
		}
	}
	if err == nil {
		err = p.catchUpIfBehind(ctx)
	}
	return true, err
}

// Tick does what is due in a publisher every second: it notes what the stream has had.
func (s Steps) Tick(ctx context.Context, publisher int) error {
	return s.relay.publishers()[publisher].tick(ctx)
}
