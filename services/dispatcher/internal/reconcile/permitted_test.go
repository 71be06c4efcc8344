package reconcile

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// permission is one that a test sets.
type permission struct{ valid, stopped bool }

func (p *permission) Valid() bool { return p.valid }

func (p *permission) WasStopped(_ context.Context, _ workload.ID, attempt int) (bool, error) {
	return p.stopped && attempt == 1, nil
}

// Without the permission of the cluster nothing that needs it is created, and all else is.
func TestNothingIsCreatedWithoutItsPermission(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needed  bool
		has     *permission
		created bool
	}{
		"it needs none":     {created: true},
		"there is none":     {needed: true},
		"it has run out":    {needed: true, has: &permission{}},
		"it lasts":          {needed: true, has: &permission{valid: true}, created: true},
		"none is not valid": {has: &permission{}, created: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			if c.has != nil {
				p.SetPermission(c.has)
			}
			command := rayCommand(1)
			command.Permitted = c.needed
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if created := slices.Contains(p.cluster.created, "r"); created != c.created || p.NeedsPermission() != c.needed {
				t.Errorf("created %t, want %t; it needs the permission: %t", created, c.created, p.NeedsPermission())
			}
			if !c.created && p.status.Message == "" {
				t.Error("the status does not say what it waits for")
			}
		})
	}
}

// An object that was stopped is reported as that when its queue has gangs stay meanwhile, and an
// attempt that was stopped is not created by a process that does not know of it.
func TestAStoppedAttemptIsNotDeletedByAUser(t *testing.T) {
	t.Parallel()
	for name, created := range map[string]bool{"the rule changes": true, "a new process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.SetPermission(&permission{valid: true, stopped: !created})
			command := rayCommand(1)
			command.Permitted = true
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if created {
				p.SetPermission(&permission{valid: true, stopped: true})
				stay := command
				stay.Permitted = false
				p.Command(&stay)
				delete(p.cluster.objects, "r")
				if err := p.see(t, 2); err != nil {
					t.Fatal(err)
				}
			}
			if !p.status.Gone || !p.status.Stopped || slices.Contains(p.cluster.created, "r") != created {
				t.Errorf("created is %v, the status %+v", p.cluster.created, p.status)
			}
		})
	}
}

// An object that is gone because its permission had ended is reported as that, once there is
// one again; one that others have deleted is not.
func TestAStoppedObjectIsReported(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{true, false} {
		t.Run(fmt.Sprintf("stopped %t", stopped), func(t *testing.T) {
			p := play(t)
			permission := &permission{valid: true}
			p.SetPermission(permission)
			command := rayCommand(1)
			command.Permitted = true
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			delete(p.cluster.objects, "r")
			permission.valid, permission.stopped = false, stopped
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if p.status.Gone {
				t.Error("it is reported as gone while the cluster has no permission")
			}
			permission.valid = true
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if want := (event.GangStatus{Gone: true, Stopped: stopped}); p.status.Gone != want.Gone || p.status.Stopped != want.Stopped {
				t.Errorf("the status is %+v, want gone, and stopped %t", p.status, stopped)
			}
		})
	}
}
