package reconcile

import (
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
)

// SetTracer gives the reconciler what makes spans, before Run.
func (r *Reconciler) SetTracer(tracer tracing.Tracer) { r.tracer = tracer }

// Traced notes the context of a command that Command is about to be given.
func (r *Reconciler) Traced(id workload.ID, traceparent string) {
	if !r.tracer.On() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traced[id] = traceparent
}

func (r *Reconciler) contextOf(id workload.ID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.traced[id]
}

// trace adds what was done in Kubernetes for a command to the workload's trace.
func (r *Reconciler) trace(command *event.GangDesired, name string, began time.Time, err error) {
	r.tracer.Continue(command.Workload, r.contextOf(command.Workload), name, began, "muster.cluster", command.Cluster,
		"k8s.kind", command.Kind, "k8s.namespace.name", command.Namespace, "k8s.name", command.Name).End(err)
}
