package reconcile

import (
	"context"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Sweep finds objects and pods that no live workload owns, and removes them.
func (r *Reconciler) Sweep(ctx context.Context, truth Truth) { r.sweeper.sweep(ctx, truth) }

// Strays deals with pods that are not of Muster, by the rules of their namespaces.
func (r *Reconciler) Strays(ctx context.Context, rules map[string]string) { r.strays.round(ctx, rules) }

// RepublishAll has all statuses published again, as after a lost connection to NATS.
func (r *Reconciler) RepublishAll() {
	r.republisher.publishMatching(func(workload.ID) bool { return true })
}

// Republish has the statuses of the wanted workloads published again.
func (r *Reconciler) Republish(wanted func(workload.ID) bool) { r.republisher.publishMatching(wanted) }

// RepublishNext has the next part of all statuses published again.
func (r *Reconciler) RepublishNext() { r.republisher.publishNext() }

// Ask notes a question of queue-manager. It reports whether another queue-manager
// leads than the one that asked last.
func (r *Reconciler) Ask(q *event.ReportWanted) (another bool) { return r.republisher.ask(q) }
