package main

import (
	"context"

	"muster.dev/muster/test/bench/sections"
)

// take measures and prints a table.
type take func(context.Context, options) error

// tables are in the order in which they are taken. A count of zero leaves one out.
func tables() []sections.Section[take] {
	alone := func(measure func() error) take {
		return func(context.Context, options) error { return measure() }
	}
	counted := func(count func(options) int, measure take) take {
		return func(ctx context.Context, o options) error {
			if count(o) < 1 {
				return nil
			}
			return measure(ctx, o)
		}
	}
	return []sections.Section[take]{
		{Name: "new-gangs", Group: "decisions", Take: alone(newGangs)},
		{Name: "other-decisions", Group: "decisions", Take: alone(largeDecisions)},
		{Name: "node-event", Group: "decisions", Take: alone(nodeEvents)},
		{Name: "idle", Group: "cluster", Take: counted(func(o options) int { return o.idle }, idle)},
		{Name: "tail", Take: counted(func(o options) int { return o.idle }, tail)},
		{Name: "burst", Group: "cluster", Take: counted(func(o options) int { return min(o.burst, o.rounds) }, bursts)},
		{Name: "large", Group: "cluster", Take: counted(func(o options) int { return o.large - 1 }, large)},
		{Name: "pins", Group: "cluster", Take: counted(func(o options) int { return o.large }, pins)},
		{Name: "restart", Take: restart},
		{Name: "takeover", Take: counted(func(o options) int { return o.takeOvers }, takeOvers)},
	}
}
