package relay

import "context"

// Steps does by hand, one thing at a time and without goroutines, what Run does:
// for a simulation, which says when.
type Steps struct{ relay *Relay }

// Steps begins as Run does, without publishing yet.
func (r *Relay) Steps(ctx context.Context) (Steps, error) { return Steps{r}, r.begin(ctx) }

// Lanes is how many lanes there are. Each has steps of its own, which must not
// overlap.
func (s Steps) Lanes() int { return len(s.relay.publishers()) }

// Begin finds out where the lane's stream ends and sends what earlier terms left.
func (s Steps) Begin(ctx context.Context, lane int) error {
	return s.relay.publishers()[lane].begin(ctx)
}

// Next does what is due in a lane, a comparison before anything else, and reports
// whether there was anything.
func (s Steps) Next(ctx context.Context, lane int) (bool, error) {
	l := s.relay.publishers()[lane]
	var err error
	select {
	case <-l.checks:
		err = l.compare(ctx)
	default:
		select {
		case messages := <-l.handed:
			err = l.send(ctx, l.unsent(l.more(messages)))
		default:
			if !l.behind.Load() {
				return false, nil
			}
		}
	}
	if err == nil {
		err = l.catchUpIfBehind(ctx)
	}
	return true, err
}

// Tick does what is due in a lane every second: it notes what the stream has had.
func (s Steps) Tick(ctx context.Context, lane int) error {
	return s.relay.publishers()[lane].tick(ctx)
}
