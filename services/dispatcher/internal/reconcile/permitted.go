package reconcile

import (
	"context"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Permission is that of the cluster, for the gangs that need one.
type Permission interface {
	// Valid reports whether what needs it may be created and changed now.
	Valid() bool
	// WasStopped reports whether the objects of an attempt were deleted because it had ended.
	WasStopped(ctx context.Context, id workload.ID, attempt int) (bool, error)
}

// SetPermission sets the permission, before Run. Without one nothing that needs it is created.
func (r *Reconciler) SetPermission(permission Permission) { r.permission = permission }

// NeedsPermission reports whether a workload is commanded that needs the permission.
func (r *Reconciler) NeedsPermission() bool {
	for _, t := range r.workloads.all() {
		if command := t.wanted(); command != nil && command.State == event.Present && command.Permitted {
			return true
		}
	}
	return false
}

// IsCommanded reports whether an attempt is commanded to be present.
func (r *Reconciler) IsCommanded(id workload.ID, attempt int) bool {
	command := r.workloads.get(id).wanted()
	return command != nil && command.State == event.Present && command.Attempt == attempt
}

// LookAtPermitted has the workloads looked at that need the permission.
func (r *Reconciler) LookAtPermitted() {
	for _, t := range r.workloads.all() {
		if command := t.wanted(); command != nil && command.State == event.Present && command.Permitted {
			r.Look(command.Workload)
		}
	}
}

// forbidden reports whether the workload needs a permission that the cluster does not have.
func (p *pass) forbidden() bool {
	return p.command.Permitted && (p.permission == nil || !p.permission.Valid())
}

// awaitPermission does nothing to a workload without permission: another process may be
// removing what is there. What was created is reported once there is one again.
func (p *pass) awaitPermission(ctx context.Context) (time.Duration, error) {
	if p.status.Created || p.status.Gone {
		return pollAfter, nil
	}
	p.status.Message = "waits for queue-manager to permit this cluster to run it"
	return pollAfter, p.report(ctx)
}

// noteGone notes that the object of a workload is gone, and whether a dispatcher has deleted
// it because the permission had ended. The rule of the queue may have changed since, so the
// command does not say whether it needed the permission.
func (p *pass) noteGone(ctx context.Context) (err error) {
	if p.permission != nil {
		if p.status.Stopped, err = p.permission.WasStopped(ctx, p.command.Workload, p.command.Attempt); err != nil {
			return err
		}
	}
	p.status.Gone = true
	return nil
}

// wasStopped reports whether the attempt was stopped, so that it is not created again: another
// process of the dispatcher may not have known that it was created.
func (p *pass) wasStopped(ctx context.Context) (bool, error) {
	if !p.command.Permitted || p.permission == nil {
		return false, nil
	}
	return p.permission.WasStopped(ctx, p.command.Workload, p.command.Attempt)
}
