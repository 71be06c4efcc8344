package reconcile

import (
	"context"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Sweep looks for objects and pods that no live workload owns, and removes them.
func (r *Reconciler) Sweep(ctx context.Context, truth Truth) { r.sweeper.sweep(ctx, truth) }

// Strays deals with pods that are not of Muster, by the rules of their namespaces.
func (r *Reconciler) Strays(ctx context.Context, rules map[string]string) { r.strays.round(ctx, rules) }

// Repeat has all statuses published again, as after the bus was lost.
func (r *Reconciler) Repeat() { r.repeats.those(func(workload.ID) bool { return true }) }

// RepeatThose has the statuses of some workloads published again.
func (r *Reconciler) RepeatThose(wanted func(workload.ID) bool) { r.repeats.those(wanted) }

// RepeatSome has the next part of all statuses published again.
func (r *Reconciler) RepeatSome() { r.repeats.some() }

// Ask takes in a question of queue-manager. It reports whether another queue-manager
// leads than the one that asked last.
func (r *Reconciler) Ask(q *event.ReportWanted) (another bool) { return r.repeats.ask(q) }
