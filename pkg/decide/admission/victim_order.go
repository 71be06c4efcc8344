package admission

import "fmt"

// VictimOrder is by what the victims of a preemptor are chosen, among those that the
// policies of its queue let it evict. Only simulations choose another than LeastRegret, to
// compare them.
type VictimOrder int

// The orders.
const (
	// LeastRegret evicts none of a level where lower ones are enough, and of a level those
	// that lose least.
	LeastRegret VictimOrder = iota
	// AsKueue evicts in the order of priority, the lowest first, then the one admitted last,
	// until that is enough, and puts back those that are not needed.
	AsKueue
	// FewestGangs evicts as few gangs as possible, and of such sets the one with the least
	// regret.
	FewestGangs
)

// victimOrders are the names of the orders.
func victimOrders() []string { return []string{"regret", "kueue", "fewest"} }

// ParseVictimOrder returns the order of a name.
func ParseVictimOrder(name string) (VictimOrder, error) {
	for i, known := range victimOrders() {
		if name == known {
			return VictimOrder(i), nil
		}
	}
	return LeastRegret, fmt.Errorf("order %q: want one of %v", name, victimOrders())
}

// OrderVictims has victims chosen in that order from now on.
func (s *State) OrderVictims(by VictimOrder) { s.victimOrder = by }
